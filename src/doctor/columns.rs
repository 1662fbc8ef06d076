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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_would_see_is_escaped_and_its_neighbours_are_not() {
        let hidden = [
            (0x00, 0x1f),
            (0x7f, 0x9f),
            (0xad, 0xad),
            (0x61c, 0x61c),
            (0x180e, 0x180e),
            (0x200b, 0x200f),
            (0x2028, 0x202e),
            (0x2060, 0x2069),
            (0xfeff, 0xfeff),
            (0xe0000, 0xe007f),
        ];
        for (first, last) in hidden {
            let is_shown =
                |code| char::from_u32(code).is_none_or(|letter| visible(&letter.to_string()) == letter.to_string());
            assert_eq!([first, last].map(is_shown), [false; 2], "{first:x}");
            let neighbours = [first.wrapping_sub(1), last + 1];
            assert_eq!(neighbours.map(is_shown), [true; 2], "{first:x}");
        }
    }

    #[test]
    fn a_time_has_a_unit_that_suits_it() {
        for (micros, text) in [
            (1_234, "1.23 ms"),
            (9_990, "9.99 ms"),
            (10_000, "10 ms"),
            (9_999_000, "9999 ms"),
            (10_000_000, "10.0 s"),
            (61_250_000, "61.2 s"),
        ] {
            assert_eq!(time(Duration::from_micros(micros)), text);
        }
        assert_eq!([0, 1, 2].map(|number| self::count(number, "wait", "waits")), ["0 waits", "1 wait", "2 waits"]);
    }

    #[test]
    fn a_text_that_fits_exactly_is_whole_and_one_that_does_not_fills_its_room() {
        assert_eq!([4, 3].map(|room| beginning("abcd", room)), ["abcd", "ab…"]);
        assert_eq!([4, 3].map(|room| ending("abcd", room)), ["abcd", "…cd"]);
        assert_eq!([4, 3].map(|room| beginning("名名", room)), ["名名", "名…"]);
    }
}
