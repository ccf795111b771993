use super::*;

fn plan(work: Work, sizes: &[u64]) -> Plan {
    Plan {
        work,
        contenders: Vec::new(),
        sizes: sizes.to_vec(),
        ranks: 4,
        iterations: None,
        repetitions: 1,
        in_use: false,
        buffers: Memory::Private,
        rotation_bytes: None,
        verify: false,
        cpus: Vec::new(),
    }
}

#[test]
fn buffers_hold_the_larger_side() {
    let bytes = |kind| plan(Work::Collective(kind), &[8, 4096]).buffer_bytes();
    assert_eq!(bytes(Kind::Broadcast), 4096);
    for kind in [Kind::Scatter, Kind::Gather, Kind::Allgather, Kind::Alltoall, Kind::ReduceScatter] {
        assert_eq!(bytes(kind), 4 * 4096, "{kind}");
    }
    assert_eq!(bytes(Kind::Barrier), 64);
    let mut rotating = plan(Work::Collective(Kind::Broadcast), &[4096]);
    rotating.rotation_bytes = Some(1 << 20);
    assert_eq!(rotating.buffer_bytes(), 1 << 20);
}

#[test]
fn an_owner_has_a_block_for_each() {
    use crate::collectives::access::Access;
    let plan = plan(Work::Contention(Access::OneToAll), &[100]);
    assert_eq!(plan.buffer_bytes(), 4 * 128);
}
