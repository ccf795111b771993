//! The list of mechanisms: one line each, in order of preference. This is the
//! only place that knows them by name.

use lmt_core::mechanism::Mechanisms;

/// Adds every mechanism that this crate brings, as its defaults make it.
pub fn register_all(mechanisms: &mut Mechanisms) {
    mechanisms.register(lmt_mapped::Mapped::new());
    mechanisms.register(lmt_xpmem::Xpmem::new());
    mechanisms.register(lmt_cma::Cma::new());
    mechanisms.register(lmt_knem::KnemIoctl::new());
    mechanisms.register(lmt_knem::KnemUser::new());
    if let Ok(shm) = lmt_shm::Shm::new(lmt_shm::Config::default()) {
        mechanisms.register(shm);
    }
    mechanisms.register(lmt_ring::Ring::default());
    mechanisms.register(lmt_vmsplice::Vmsplice::new());
    mechanisms.register(lmt_vmsplice::Writev::new());
    mechanisms.register(lmt_ioat::IoatKnem::default());
    mechanisms.register(lmt_ioat::IoatSoftware::default());
    if let Ok(dsa) = lmt_ioat::pipeline::ioat_dsa() {
        mechanisms.register(dsa);
    }
}

/// The names of the mechanisms that this crate brings, in order.
///
/// ```
/// assert!(lmt::mechanism_names().contains(&"shm"));
/// ```
pub fn mechanism_names() -> Vec<&'static str> {
    let mut mechanisms = Mechanisms::new();
    register_all(&mut mechanisms);
    mechanisms.names()
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_mechanism_is_there_once() {
        let mut names = super::mechanism_names();
        names.sort_unstable();
        assert!(names.is_sorted_by(|one, next| one < next), "{names:?}");
    }
}
