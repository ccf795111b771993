//! Tests under a driver, the machine's or a stand-in for it.

/// Has this test, and the processes that it starts, find a driver: a stand-in,
/// or the machine's own where `LMT_REAL_KNEM` is set. Where there can be none,
/// opening it tells so. Returns whether it is a stand-in of this kind.
pub fn stand_in(options: knem_stand_in::Options) -> bool {
    if std::env::var_os("LMT_REAL_KNEM").is_some() {
        return false;
    }
    let ensured = knem_stand_in::ensure(options);
    if let Err(why) = &ensured {
        println!("no stand-in: {why}");
    }
    ensured.is_ok()
}
