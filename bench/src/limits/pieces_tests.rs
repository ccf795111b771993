use super::*;

#[test]
fn pieces_grow_cover_and_stay_inside_multiples_of_the_longest() {
    for bytes in [1, 1023, 1024, 1025, 8192, 65_536, 100_000, (1 << 20) + 1] {
        for most in [1024, 4096, 32_768] {
            let mut at = 0;
            for piece in pieces(bytes, most) {
                assert_eq!(piece.start, at, "{bytes} by {most}");
                assert!(!piece.is_empty() && piece.len() <= most);
                assert_eq!(
                    piece.start / most,
                    (piece.end - 1) / most,
                    "{piece:?} crosses a multiple of {most}"
                );
                at = piece.end;
            }
            assert_eq!(at, bytes);
        }
    }
    let first: Vec<usize> = pieces(20_000, 8192).map(|piece| piece.len()).collect();
    assert_eq!(first, [1024, 1024, 2048, 4096, 8192, 3616]);
}

#[test]
fn a_message_without_bytes_is_announced_once() {
    assert_eq!(pieces(0, 4096).map(|piece| (piece.start, piece.end)).collect::<Vec<_>>(), [(0, 0)]);
    assert_eq!(chunk_starts(0, 4096).collect::<Vec<_>>(), [0]);
    assert_eq!(chunk_starts(8193, 4096).collect::<Vec<_>>(), [0, 4096, 8192]);
}

#[test]
fn a_front_ends_at_a_page() {
    assert_eq!(front(1 << 20, 50), 1 << 19);
    assert_eq!(front(65_536, 65), 40_960);
    assert_eq!(front(4096, 50), 0);
    assert_eq!(front(0, 50), 0);
}

#[test]
fn claims_from_both_ends_meet_and_take_every_chunk_once() {
    for chunks in [1u32, 2, 7] {
        for pattern in 0..1u32 << chunks {
            let mut claims = Claims(0);
            let mut taken = Vec::new();
            for turn in 0.. {
                let claim_back = pattern >> (turn % chunks) & 1 == 1;
                let claim = if claim_back {
                    claims.claim_back(chunks.into())
                } else {
                    claims.claim_front(chunks.into())
                };
                let Some((chunk, word)) = claim else { break };
                taken.push(chunk);
                claims = Claims(word);
            }
            assert!(claims.claim_front(chunks.into()).is_none());
            taken.sort_unstable();
            assert_eq!(taken, (0..u64::from(chunks)).collect::<Vec<_>>(), "{pattern:b}");
        }
    }
}
