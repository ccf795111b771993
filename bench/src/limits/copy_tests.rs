use super::*;

#[test]
fn every_length_and_alignment_arrives_and_nothing_else_is_written() {
    let from: Vec<u8> = (0..20_000u32).map(|i| (i * 7 + i / 256) as u8).collect();
    for stores in [Stores::Cached, Stores::Streaming, Stores::String] {
        for bytes in (0..300).chain([1000, 1024, 1500, 16_383, 16_384, 17_000]) {
            for (source, target) in [(0, 0), (1, 0), (0, 1), (33, 17), (64, 63)] {
                let mut into = vec![0xA5u8; 20_000];
                let (to, at) = (into[target..].as_mut_ptr(), from[source..].as_ptr());
                // SAFETY: source and target plus 17 000 bytes are inside the two
                // vectors, which are this thread's own.
                unsafe { copy(to, at, bytes, stores) };
                let case = format!("{bytes} bytes, {source} to {target}, {stores:?}");
                assert_eq!(into[target..target + bytes], from[source..source + bytes], "{case}");
                assert!(
                    into[..target].iter().chain(&into[target + bytes..]).all(|&byte| byte == 0xA5),
                    "{case}"
                );
            }
        }
    }
}
