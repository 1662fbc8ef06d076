//! Linker settings for a Node-API addon; nothing when the core is built alone.

fn main() {
    if std::env::var_os("CARGO_FEATURE_NODE").is_some() {
        napi_build::setup();
    }
}
