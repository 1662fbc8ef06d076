//! Text in the columns of a terminal, and figures for people.

use std::time::Duration;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Escapes characters that a terminal would obey, or that nobody would see.
pub fn visible(text: &str) -> String {
    let is_hidden = |character: char| {
        character.is_control()
            || matches!(
                character,
                '\u{ad}'
                    | '\u{61c}'
                    | '\u{180e}'
                    | '\u{200b}'..='\u{200f}'
                    | '\u{2028}'..='\u{202e}'
                    | '\u{2060}'..='\u{2069}'
                    | '\u{feff}'
                    | '\u{e0000}'..='\u{e007f}'
            )
    };
    let shown =
        |character: char| if is_hidden(character) { character.escape_default().to_string() } else { character.into() };
    text.chars().map(shown).collect()
}

/// The beginning of a text that is too long for this room.
pub fn beginning(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.into();
    }
    let mut used = 1;
    let fits = |character: &char| {
        used += character.width().unwrap_or(0);
        used <= room
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

/// The end of it.
pub fn ending(text: &str, room: usize) -> String {
    let turned: String = text.chars().rev().collect();
    beginning(&turned, room).chars().rev().collect()
}

pub fn time(duration: Duration) -> String {
    let ms = duration.as_secs_f64() * 1e3;
    match ms {
        ms if ms >= 10_000.0 => format!("{:.1} s", ms / 1e3),
        ms if ms >= 10.0 => format!("{ms:.0} ms"),
        ms => format!("{ms:.2} ms"),
    }
}

pub fn count(count: usize, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}
