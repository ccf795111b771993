use std::thread;

use super::super::{METHODS, Method};
use crate::limits::LimitError;
use crate::patterns::arena::Arena;

use super::*;

/// Every byte of every message arrives by every method, in both directions:
/// two threads of this process are the two ends.
#[test]
fn every_method_delivers_every_byte() {
    let moves = |method: &&Method| method.work.moves_bytes() && method.work.is_round_trip();
    for method in METHODS.iter().filter(moves) {
        let memory = Pair::memory().unwrap();
        let card = memory.card();
        let second = thread::spawn(move || ends(Pair::second(&card).unwrap(), 1, method));
        let first = ends(Pair::first(memory).unwrap(), 0, method);
        let second = second.join().unwrap();
        for result in [first, second] {
            result.unwrap_or_else(|fault| panic!("{}: {fault}", method.name));
        }
    }
}

/// Sizes at and around chunks, pages and rings. 8 MiB + 1 KiB goes round every
/// ring; a size after it finds the ring as a longer message left it.
const SIZES: [usize; 10] =
    [0, 1, 1024, 5000, 65_536, 200_001, (1 << 20) + 4096, (8 << 20) + 1024, 8192, 3 << 20];

fn ends(mut pair: Pair, me: usize, method: &'static Method) -> Result<(), String> {
    if let Some(refused) = pair.refused(method) {
        eprintln!("skipped: {refused}");
        return Ok(());
    }
    let failed = |error: LimitError| error.to_string();
    for (round, &bytes) in SIZES.iter().enumerate() {
        let mut outgoing = vec![0u8; bytes];
        let mut incoming = vec![0u8; bytes];
        let mark = |from: usize, at: usize| (at % 251 + 3 * from + 5 * round + 1) as u8;
        for (at, byte) in outgoing.iter_mut().enumerate() {
            *byte = mark(me, at);
        }
        if method.work.has_shared_buffers() {
            pair.share_buffers(bytes).map_err(failed)?;
            shared_round(&mut pair, method, &mut outgoing, &mut incoming)?;
        } else {
            let mut arenas = (
                Arena::packed(&mut outgoing, bytes, 1).ok_or("no room")?,
                Arena::packed(&mut incoming, bytes, 1).ok_or("no room")?,
            );
            pair.repetition(method, &mut arenas.0, &mut arenas.1, false, 2).map_err(failed)?;
        }
        if let Some(at) = (0..bytes).find(|&at| incoming[at] != mark(1 - me, at)) {
            return Err(format!(
                "byte {at} of {bytes} is {} and should be {}",
                incoming[at],
                mark(1 - me, at)
            ));
        }
    }
    Ok(())
}

/// Messages between the shared buffers, with the two vectors' bytes.
fn shared_round(
    pair: &mut Pair,
    method: &'static Method,
    outgoing: &mut [u8],
    incoming: &mut [u8],
) -> Result<(), String> {
    pair.write_shared(outgoing);
    let bytes = outgoing.len();
    let (mut here, mut there) = (vec![0u8; bytes], vec![0u8; bytes]);
    let mut arenas = (
        Arena::packed(&mut here, bytes, 1).ok_or("no room")?,
        Arena::packed(&mut there, bytes, 1).ok_or("no room")?,
    );
    let timed = pair.repetition(method, &mut arenas.0, &mut arenas.1, false, 2);
    timed.map_err(|error| error.to_string())?;
    pair.read_shared(incoming);
    Ok(())
}
