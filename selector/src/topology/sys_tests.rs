use std::mem::{offset_of, size_of};
use std::process::Command;

use super::*;

/// Every field whose offset counts, as (name in hwloc.h, offset here).
fn fields() -> Vec<(&'static str, usize)> {
    vec![
        ("struct hwloc_obj, type", offset_of!(RawObject, object_type)),
        ("struct hwloc_obj, os_index", offset_of!(RawObject, os_index)),
        ("struct hwloc_obj, attr", offset_of!(RawObject, attr)),
        ("struct hwloc_obj, symmetric_subtree", offset_of!(RawObject, symmetric_subtree)),
        ("struct hwloc_obj, memory_arity", offset_of!(RawObject, memory_arity)),
        ("struct hwloc_obj, cpuset", offset_of!(RawObject, cpuset)),
        ("struct hwloc_obj, complete_cpuset", offset_of!(RawObject, complete_cpuset)),
        ("struct hwloc_cache_attr_s, size", offset_of!(RawCacheAttributes, size)),
        ("struct hwloc_cache_attr_s, type", offset_of!(RawCacheAttributes, cache_type)),
    ]
}

/// Every number that this file takes from hwloc.h.
fn numbers() -> Vec<(&'static str, u64)> {
    vec![
        ("HWLOC_OBJ_MACHINE", Type::MACHINE.0.into()),
        ("HWLOC_OBJ_PACKAGE", Type::PACKAGE.0.into()),
        ("HWLOC_OBJ_CORE", Type::CORE.0.into()),
        ("HWLOC_OBJ_PU", Type::PU.0.into()),
        ("HWLOC_OBJ_NUMANODE", Type::NUMA_NODE.0.into()),
        ("HWLOC_OBJ_L1CACHE", Type::CACHES[0].1.0.into()),
        ("HWLOC_OBJ_L2CACHE", Type::CACHES[1].1.0.into()),
        ("HWLOC_OBJ_L3CACHE", Type::CACHES[2].1.0.into()),
        ("HWLOC_OBJ_L4CACHE", Type::CACHES[3].1.0.into()),
        ("HWLOC_OBJ_L5CACHE", Type::CACHES[4].1.0.into()),
        ("sizeof(hwloc_obj_type_t)", size_of::<c_uint>() as u64),
        ("sizeof(struct hwloc_cache_attr_s)", size_of::<RawCacheAttributes>() as u64),
    ]
}

/// The C compiler, which linking Rust needs anyway, computes both from the
/// header that is installed.
#[test]
fn layout_is_that_of_the_header() {
    let mut program = String::from("#include <stddef.h>\n#include <hwloc.h>\n");
    for (field, offset) in fields() {
        program += &format!("_Static_assert(offsetof({field}) == {offset}, \"{field}\");\n");
    }
    for (name, number) in numbers() {
        program += &format!("_Static_assert({name} == {number}, \"{name}\");\n");
    }
    for (flag, bits) in [("0x00020800", flags(0x0002_0800)), ("0x00020500", flags(0x0002_0500))] {
        program += &format!("#if HWLOC_API_VERSION >= {flag}\n");
        program += "_Static_assert((HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED | ";
        program += "HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING";
        if flag == "0x00020800" {
            program += " | HWLOC_TOPOLOGY_FLAG_NO_DISTANCES | HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS";
            program += " | HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS";
        }
        program += &format!(") == {bits}, \"flags\");\n#endif\n");
    }
    let source = std::env::temp_dir().join(format!("lmt-hwloc-layout-{}.c", std::process::id()));
    std::fs::write(&source, &program).expect("the temporary directory can be written");
    let compiled = Command::new("cc").arg("-fsyntax-only").arg(&source).output();
    std::fs::remove_file(&source).expect("it was written above");
    let compiled = compiled.expect("a C compiler links this test, so there is one");
    assert!(compiled.status.success(), "{}\n{program}", String::from_utf8_lossy(&compiled.stderr));
}

#[test]
fn only_hwloc_2_is_read() {
    assert!(is_supported(0x0002_0000));
    assert!(is_supported(0x0002_0c00));
    assert!(!is_supported(0x0003_0000), "it numbers its types otherwise");
    assert!(!is_supported(0x0001_0b00));
    let library = Library::get().expect("hwloc is installed where this is tested");
    assert!(is_supported(library.version));
}

#[test]
fn a_version_is_asked_only_for_what_it_knows() {
    assert_eq!(flags(0x0002_0100), 1);
    assert_eq!(flags(0x0002_0500), 1 | 64);
    assert_eq!(flags(0x0002_0700), 1 | 64);
    assert_eq!(flags(0x0002_0b00), 1 | 64 | 128 | 256 | 512);
}

#[test]
fn an_unknown_type_has_no_objects() {
    let topology = Unloaded::new(Library::get().unwrap()).unwrap().load().unwrap();
    assert!(topology.objects(Type(4711)).is_empty());
    assert!(topology.objects(Type(c_uint::MAX)).is_empty());
    assert_eq!(topology.objects(Type::MACHINE).len(), 1);
}
