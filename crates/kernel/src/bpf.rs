//! Registers, configures, pins and unregisters objects in the kernel, with `bpftool`.

use std::fs;
use std::path::{Path, PathBuf};

use giveway_kernel_plan::plan::Params;

use crate::KernelError;
use crate::printed;
use crate::tools::BPFTOOL;

/// Folder of the pinned maps, with a folder for each interface.
pub const PINS: &str = "/sys/fs/bpf/giveway";

/// Marks below this number are looked up in an array, others in a hash table: `kernel/port.h`.
const LOW_MARKS: u32 = 1024;

/// An object in the kernel.
pub(crate) struct Object {
    /// The kernel's number of the object.
    pub id: u64,
    /// Number of packets and flows for which it has memory, plus one.
    pub capacity: u64,
    maps: Vec<(String, u64)>,
}

impl Object {
    /// Registers an object file.
    pub fn register(path: &Path) -> Result<Object, KernelError> {
        let (out, err) = match BPFTOOL.outputs(&["struct_ops", "register", &path.to_string_lossy()]) {
            // bpftool gives no other reason if the name is taken.
            Err(KernelError::Failed { output, .. }) if output.contains("can't register") => {
                let what = format!(
                    "{}: the kernel already has a qdisc of this name: build the object with another name, for example giveway kernel \
                     build efd --name giveway_efd_2",
                    path.display()
                );
                return Err(KernelError::precondition(what));
            }
            other => other?,
        };
        // The number of the object may be on either output.
        let output = format!("{out}{err}");
        let Some(id) = printed::registered(&output) else {
            let command = format!("bpftool struct_ops register {}", path.display());
            return Err(KernelError::Failed { command, output });
        };
        let shown =
            BPFTOOL.json(&["-j", "map", "show"]).inspect_err(|_| unregister(id).unwrap_or_default())?;
        let (maps, capacity) = printed::maps(&shown, id);
        Ok(Object { id, capacity, maps })
    }

    /// The kernel's number of a map.
    pub fn map(&self, name: &str) -> Result<u64, KernelError> {
        let found = self.maps.iter().find(|(other, _)| other == name);
        found.map(|(_, id)| *id).ok_or_else(|| {
            KernelError::precondition(format!("the object has no map {name}: it is not an object of Giveway"))
        })
    }

    /// The qdisc's name in `tc`.
    pub fn name(&self) -> Result<String, KernelError> {
        let dump = BPFTOOL.run(&["-j", "struct_ops", "dump", "id", &self.id.to_string()])?;
        printed::object_name(&dump).ok_or_else(|| {
            KernelError::precondition("the object has no name: it is not an object of Giveway")
        })
    }

    /// Writes the parameters.
    pub fn write_params(&self, params: &Params) -> Result<(), KernelError> {
        write_params(self.map(".data.params")?, params)
    }

    /// Writes the value of a packet mark: a reserved rate or a route.
    pub fn write_mark(&self, mark: u32, value: u64) -> Result<(), KernelError> {
        let map = if mark < LOW_MARKS { "low_marks" } else { "reservations" };
        update(self.map(map)?, &mark.to_ne_bytes(), &value.to_ne_bytes())
    }

    /// Pins the maps that other programs may read or write, in the folder of an interface.
    pub fn pin(&self, stem: &str) -> Result<(), KernelError> {
        let folder = pins(stem);
        fs::create_dir_all(&folder).map_err(KernelError::file(&folder))?;
        for (map, id) in &self.maps {
            let pin = match map.as_str() {
                ".data.counters" => "counters",
                ".data.params" => "params",
                "reservations" | "low_marks" | "journal" => map,
                _ => continue,
            };
            BPFTOOL.run(&["map", "pin", "id", &id.to_string(), &folder.join(pin).to_string_lossy()])?;
        }
        Ok(())
    }
}

/// Removes an object from the kernel.
pub(crate) fn unregister(id: u64) -> Result<(), KernelError> {
    BPFTOOL.run(&["struct_ops", "unregister", "id", &id.to_string()]).map(drop)
}

/// Removes the pins of an interface, if there are any.
pub(crate) fn unpin(stem: &str) {
    let folder = pins(stem);
    for pin in fs::read_dir(&folder).into_iter().flatten().flatten() {
        let _ = fs::remove_file(pin.path());
    }
    let _ = fs::remove_dir(&folder);
}

/// Writes the parameters into the map with this number.
pub(crate) fn write_params(map: u64, params: &Params) -> Result<(), KernelError> {
    update(map, &[0; 4], &bytes(params))
}

/// Reads the counters from the map with this number, in the order of the C struct.
pub(crate) fn counters(map: u64) -> Result<Vec<(String, u64)>, KernelError> {
    let dump = BPFTOOL.json(&["-j", "map", "dump", "id", &map.to_string()])?;
    printed::counters(&dump).ok_or_else(|| {
        let command = format!("bpftool map dump id {map}");
        KernelError::Failed { command, output: "its output has no counters".to_owned() }
    })
}

fn pins(stem: &str) -> PathBuf {
    Path::new(PINS).join(stem)
}

fn update(map: u64, key: &[u8], value: &[u8]) -> Result<(), KernelError> {
    let id = map.to_string();
    let (key, value) = (hex(key), hex(value));
    let mut words = vec!["map", "update", "id", &id, "key", "hex"];
    words.extend(key.iter().map(String::as_str));
    words.extend(["value", "hex"]);
    words.extend(value.iter().map(String::as_str));
    BPFTOOL.run(&words).map(drop)
}

fn hex(bytes: &[u8]) -> Vec<String> {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(params: &Params) -> Vec<u8> {
    params.words().into_iter().flat_map(|(_, word)| word.to_ne_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_kernel_reads_them() {
        let params = Params { rate: 0x0102, ..Params::default() };
        assert_eq!(hex(&bytes(&params)[..8]), 0x0102u64.to_ne_bytes().map(|byte| format!("{byte:02x}")));
        assert_eq!(bytes(&params).len(), 104);
    }
}
