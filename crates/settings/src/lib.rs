//! TOML settings: raw, checked, each room's parameters; and the documents generated from them.
