//! Tests under a driver, the machine's or a stand-in for it.

/// Has this test, and the processes that it starts, find a driver. Where there
/// can be none, the driver itself tells so when it is opened.
pub fn stand_in(options: knem_stand_in::Options) {
    if std::env::var_os("LMT_REAL_KNEM").is_some() {
        return;
    }
    if let Err(why) = knem_stand_in::ensure(options) {
        println!("no stand-in: {why}");
    }
}
