use lmt_collectives::{Element, Operator};

use super::*;

fn calls(kind: Kind, rank: u32, ranks: u32) -> Calls {
    Calls { kind, rank, ranks, sum: Reduction::new(Operator::Sum, Element::F32).unwrap() }
}

/// What a call would leave, made of what all ranks have put in.
fn result(kind: Kind, rank: u32, ranks: u32, bytes: u64) -> Vec<u8> {
    let (input, output) = lengths(kind, bytes, ranks).unwrap();
    let inputs: Vec<Vec<u8>> = (0..ranks)
        .map(|rank| {
            let mut memory = vec![0; input];
            calls(kind, rank, ranks).fill(bytes, &mut memory);
            memory
        })
        .collect();
    let block = bytes as usize;
    let part = |memory: &[u8], at: u32| memory[at as usize * block..][..block].to_vec();
    let sum = |of: &[Vec<u8>]| -> Vec<u8> {
        let number = |memory: &[u8], at: usize| f32::from_ne_bytes(memory[4 * at..][..4].try_into().unwrap());
        (0..input / 4)
            .flat_map(|at| of.iter().map(|one| number(one, at)).sum::<f32>().to_ne_bytes())
            .collect()
    };
    let found = match kind {
        Kind::Barrier => Vec::new(),
        Kind::Broadcast => inputs[0].clone(),
        Kind::Scatter => part(&inputs[0], rank),
        Kind::Gather | Kind::Allgather => inputs.concat(),
        Kind::Alltoall => inputs.iter().flat_map(|one| part(one, rank)).collect(),
        Kind::Reduce | Kind::Allreduce => sum(&inputs),
        Kind::ReduceScatter => part(&sum(&inputs), rank),
        Kind::Scan => sum(&inputs[..=rank as usize]),
        Kind::Exscan if rank == 0 => vec![GARBAGE; output],
        Kind::Exscan => sum(&inputs[..rank as usize]),
    };
    assert_eq!(found.len(), output, "{kind}");
    found
}

#[test]
fn right_results_are_right_and_others_wrong() {
    for kind in Kind::ALL {
        for ranks in [1, 2, 5] {
            for bytes in [4, 64, 4096] {
                for rank in 0..ranks {
                    let calls = calls(kind, rank, ranks);
                    let mut output = result(kind, rank, ranks, bytes);
                    assert_eq!(calls.wrong(bytes, &output), None, "{kind} {rank}/{ranks} {bytes}");
                    // The highest byte of the last float, so that it is another number.
                    if let Some(last) = output.last_mut() {
                        *last ^= 0x55;
                        assert!(calls.wrong(bytes, &output).is_some(), "{kind} {rank}/{ranks} {bytes}");
                    }
                }
            }
        }
    }
}

#[test]
fn ranks_have_the_sides_of_their_operation() {
    let sides = |kind, rank| {
        let calls = calls(kind, rank, 2);
        (calls.has_input(), calls.has_output())
    };
    assert_eq!((sides(Kind::Broadcast, 0), sides(Kind::Broadcast, 1)), ((true, false), (false, true)));
    assert_eq!((sides(Kind::Scatter, 0), sides(Kind::Scatter, 1)), ((true, true), (false, true)));
    assert_eq!((sides(Kind::Gather, 0), sides(Kind::Gather, 1)), ((true, true), (true, false)));
    assert_eq!(sides(Kind::Alltoall, 1), (true, true));
}
