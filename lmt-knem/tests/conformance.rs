//! What every mechanism must keep: by the driver's requests, which a stand-in
//! answers where the tests run without the module, and without any driver.
#![cfg(not(loom))]

mod under;

lmt_conformance::suite!(knem_ioctl, {
    under::stand_in(knem_stand_in::Options::default());
    lmt_knem::KnemIoctl::new()
});

lmt_conformance::suite!(knem_user, lmt_knem::KnemUser::new());
