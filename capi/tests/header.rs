//! `include/lmt.h` is what cbindgen makes of the sources. `LMT_WRITE_HEADER=1` (`make
//! header`) writes it; without, what is checked in is compared.

mod common;

use std::path::PathBuf;

use cbindgen::{Builder, Config};
use common::folder;

fn generated() -> String {
    let config = Config::from_file(folder().join("cbindgen.toml")).expect("cbindgen.toml can be read");
    let made = Builder::new().with_config(config).with_crate(folder()).generate();
    let mut text = Vec::new();
    made.expect("cbindgen understands the sources").write(&mut text);
    String::from_utf8(text).expect("a header is text")
}

#[test]
fn the_header_is_that_of_the_sources() {
    let path: PathBuf = folder().join("include/lmt.h");
    let made = generated();
    if std::env::var("LMT_WRITE_HEADER").is_ok_and(|value| value == "1") {
        std::fs::write(&path, made).expect("the header can be written");
        return;
    }
    let kept = std::fs::read_to_string(&path).expect("the header is there");
    let differs = kept.lines().zip(made.lines()).position(|(kept, made)| kept != made);
    assert!(
        kept == made,
        "{} is not what the sources say, from line {} on; run `make header`",
        path.display(),
        differs.map_or_else(|| kept.lines().count().min(made.lines().count()) + 1, |at| at + 1)
    );
}
