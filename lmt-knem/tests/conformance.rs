//! What every mechanism must keep: by the driver's requests, which a stand-in
//! answers where the tests run without the module, and without any driver.
#![cfg(not(loom))]

lmt_conformance::suite!(knem_ioctl, {
    knem_stand_in::for_test(knem_stand_in::Options::default());
    lmt_knem::KnemIoctl::new()
});

lmt_conformance::suite!(knem_user, lmt_knem::KnemUser::new());
