//! Descriptors and completion records are laid out, and numbered, as the
//! header that Linux gives to user space has them (linux/idxd.h, of
//! linux-libc-dev): a C program prints what the compiler makes of it.
#![cfg(not(loom))]

use std::collections::BTreeMap;
use std::mem::offset_of;
use std::path::PathBuf;
use std::process::Command;

use lmt_ioat::dsa::descriptor::{CompletionRecord, Descriptor, flag, opcode};
use lmt_ioat::dsa::status::{CODE_MASK, FAULT_WAS_WRITE, Status};

/// What the program prints a line of: a name, and a C expression.
const EXPRESSIONS: [(&str, &str); 31] = [
    ("descriptor", "sizeof(struct dsa_hw_desc)"),
    ("completion_addr", "offsetof(struct dsa_hw_desc, completion_addr)"),
    ("src_addr", "offsetof(struct dsa_hw_desc, src_addr)"),
    ("desc_list_addr", "offsetof(struct dsa_hw_desc, desc_list_addr)"),
    ("dst_addr", "offsetof(struct dsa_hw_desc, dst_addr)"),
    ("xfer_size", "offsetof(struct dsa_hw_desc, xfer_size)"),
    ("desc_count", "offsetof(struct dsa_hw_desc, desc_count)"),
    ("int_handle", "offsetof(struct dsa_hw_desc, int_handle)"),
    ("rsvd1", "offsetof(struct dsa_hw_desc, rsvd1)"),
    ("op_specific", "offsetof(struct dsa_hw_desc, op_specific)"),
    ("record", "sizeof(struct dsa_completion_record)"),
    ("status", "offsetof(struct dsa_completion_record, status)"),
    ("result", "offsetof(struct dsa_completion_record, result)"),
    ("bytes_completed", "offsetof(struct dsa_completion_record, bytes_completed)"),
    ("fault_addr", "offsetof(struct dsa_completion_record, fault_addr)"),
    ("FENCE", "IDXD_OP_FLAG_FENCE"),
    ("BOF", "IDXD_OP_FLAG_BOF"),
    ("CRAV", "IDXD_OP_FLAG_CRAV"),
    ("RCR", "IDXD_OP_FLAG_RCR"),
    ("CC", "IDXD_OP_FLAG_CC"),
    ("NOOP", "DSA_OPCODE_NOOP"),
    ("BATCH", "DSA_OPCODE_BATCH"),
    ("MEMMOVE", "DSA_OPCODE_MEMMOVE"),
    ("COMP_NONE", "DSA_COMP_NONE"),
    ("COMP_SUCCESS", "DSA_COMP_SUCCESS"),
    ("COMP_PAGE_FAULT", "DSA_COMP_PAGE_FAULT_NOBOF"),
    ("COMP_BATCH_FAIL", "DSA_COMP_BATCH_FAIL"),
    ("COMP_BATCH_PAGE_FAULT", "DSA_COMP_BATCH_PAGE_FAULT"),
    ("STATUS_MASK", "DSA_COMP_STATUS_MASK"),
    ("STATUS_WRITE", "DSA_COMP_STATUS_WRITE"),
    ("flags_and_opcode", "((uint32_t *)&d)[1]"),
];

/// The same, as it is here.
fn ours() -> BTreeMap<String, u64> {
    let bits = Descriptor { flags_and_opcode: 0x12_3456 | 0xab << 24, ..Descriptor::default() };
    assert_eq!((bits.flags(), bits.opcode()), (0x12_3456, 0xab));
    assert_eq!(offset_of!(Descriptor, flags_and_opcode), 4);
    let list: [(&str, usize); 31] = [
        ("descriptor", size_of::<Descriptor>()),
        ("completion_addr", offset_of!(Descriptor, completion_address)),
        ("src_addr", offset_of!(Descriptor, source_address)),
        ("desc_list_addr", offset_of!(Descriptor, source_address)),
        ("dst_addr", offset_of!(Descriptor, target_address)),
        ("xfer_size", offset_of!(Descriptor, size)),
        ("desc_count", offset_of!(Descriptor, size)),
        ("int_handle", offset_of!(Descriptor, interrupt_handle)),
        ("rsvd1", offset_of!(Descriptor, reserved)),
        ("op_specific", offset_of!(Descriptor, specific)),
        ("record", size_of::<CompletionRecord>()),
        ("status", offset_of!(CompletionRecord, status)),
        ("result", offset_of!(CompletionRecord, result)),
        ("bytes_completed", offset_of!(CompletionRecord, bytes_completed)),
        ("fault_addr", offset_of!(CompletionRecord, fault_address)),
        ("FENCE", flag::FENCE as usize),
        ("BOF", flag::BLOCK_ON_FAULT as usize),
        ("CRAV", flag::RECORD_VALID as usize),
        ("RCR", flag::RECORD_WANTED as usize),
        ("CC", flag::TO_CACHE as usize),
        ("NOOP", opcode::NOOP.into()),
        ("BATCH", opcode::BATCH.into()),
        ("MEMMOVE", opcode::MEMMOVE.into()),
        ("COMP_NONE", Status::NONE.code().into()),
        ("COMP_SUCCESS", Status::SUCCESS.code().into()),
        ("COMP_PAGE_FAULT", Status::PAGE_FAULT.code().into()),
        ("COMP_BATCH_FAIL", Status::BATCH_FAIL.code().into()),
        ("COMP_BATCH_PAGE_FAULT", Status::BATCH_PAGE_FAULT.code().into()),
        ("STATUS_MASK", CODE_MASK.into()),
        ("STATUS_WRITE", FAULT_WAS_WRITE.into()),
        ("flags_and_opcode", bits.flags_and_opcode as usize),
    ];
    list.into_iter().map(|(name, value)| (name.to_owned(), value as u64)).collect()
}

/// The statuses that have a sentence of their own, by their names in the header.
const STATUSES: [(&str, &str); 4] = [
    ("DSA_COMP_XFER_ERANGE", "max_transfer_size"),
    ("DSA_COMP_OVERLAP_BUFFERS", "overlap"),
    ("DSA_COMP_CRA_XLAT", "completion record's address"),
    ("DSA_COMP_TRANSLATION_FAIL", "an address cannot be translated"),
];

/// Compiles the program and reads what it prints; `Err`: why it cannot be.
fn compiled(expressions: &[(&str, &str)]) -> Result<BTreeMap<String, u64>, String> {
    let folder =
        Folder(std::env::temp_dir().join(format!("lmt-idxd-{}-{}", std::process::id(), expressions.len())));
    std::fs::create_dir_all(&folder.0).expect("a temporary folder");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let compile = |name: &str, source: &str| {
        let file = folder.0.join(format!("{name}.c"));
        std::fs::write(&file, source).expect("written");
        let out = folder.0.join(name);
        Command::new(&compiler).arg(&file).arg("-o").arg(&out).output().map(|output| (output, out))
    };
    let (there, _) = compile("there", "#include <linux/idxd.h>\nint main(void) { return 0; }\n")
        .map_err(|error| format!("no C compiler: {compiler}: {error}"))?;
    if !there.status.success() {
        return Err("linux/idxd.h does not compile here; install linux-libc-dev".to_owned());
    }
    let mut source =
        "#include <linux/idxd.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n".to_owned();
    source += "struct dsa_hw_desc d = {0}; d.flags = 0x123456; d.opcode = 0xab;\n";
    for (name, expression) in expressions {
        source += &format!("printf(\"{name} %llu\\n\", (unsigned long long)({expression}));\n");
    }
    source += "return 0; }\n";
    let (output, program) = compile("print", &source).expect("the compiler ran before");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = Command::new(program).output().expect("the program runs");
    let lines = String::from_utf8(printed.stdout).expect("text");
    let parse = |line: &str| {
        let (name, value) = line.split_once(' ').expect("two words");
        (name.to_owned(), value.parse().expect("a number"))
    };
    Ok(lines.lines().map(parse).collect())
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_layout_is_the_headers() {
    match compiled(&EXPRESSIONS) {
        Ok(theirs) => assert_eq!(ours(), theirs),
        Err(why) => lmt_conformance::require::skipped("idxd.h", &why),
    }
}

#[test]
fn the_sentences_belong_to_the_headers_numbers() {
    let names = STATUSES.map(|(name, _)| (name, name));
    let theirs = match compiled(&names) {
        Ok(theirs) => theirs,
        Err(why) => return lmt_conformance::require::skipped("idxd.h", &why),
    };
    for (name, words) in STATUSES {
        let record = CompletionRecord { status: theirs[name] as u8, ..CompletionRecord::default() };
        let sentence = Status::of(&record).to_string();
        assert!(sentence.contains(words), "{name}: {sentence}");
    }
}
