//! Hosts on one machine: network namespaces with a name of their own each, and a
//! cable between two of them. They are gone when the test is, however it ends.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::installation::output;

/// The network interface of either host.
pub const INTERFACE: &str = "lmt0";
/// Within which it is ready.
const CABLE_LIMIT: Duration = Duration::from_secs(10);

/// One host: a process that keeps it, until its standard input ends.
pub struct Host {
    keeper: Child,
    /// Its address on the cable.
    pub address: &'static str,
}

impl Host {
    /// A host with this name.
    fn new(name: &str, address: &'static str) -> Result<Self, String> {
        let script =
            format!("echo {name} > /proc/sys/kernel/hostname && ip link set lo up && echo ready && exec cat");
        let mut keeper = Command::new("unshare")
            .args(["--net", "--uts", "sh", "-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("unshare cannot be started: {error}"))?;
        let mut said = String::new();
        let ready = keeper.stdout.take().map(|from| BufReader::new(from).read_line(&mut said));
        let host = Self { keeper, address };
        match ready {
            Some(Ok(_)) if said.trim() == "ready" => Ok(host),
            _ => Err(format!("a namespace cannot be made: {}", host.complaint())),
        }
    }

    fn complaint(mut self) -> String {
        let _ended = self.keeper.kill();
        let from = self.keeper.stderr.take();
        let text = from.map(std::io::read_to_string).and_then(Result::ok).unwrap_or_default();
        text.trim().to_owned()
    }

    /// Two hosts with a cable between them; why that cannot be otherwise.
    pub fn pair() -> Result<[Self; 2], String> {
        if !nix::unistd::geteuid().is_root() {
            return Err("only root makes network namespaces; this is not root".to_owned());
        }
        let hosts = [Self::new("lmt-host-a", "10.99.0.1")?, Self::new("lmt-host-b", "10.99.0.2")?];
        let other = hosts[1].keeper.id().to_string();
        hosts[0]
            .ip(&["link", "add", INTERFACE, "type", "veth", "peer", "name", INTERFACE, "netns", &other])?;
        for host in &hosts {
            host.ip(&["addr", "add", &format!("{}/24", host.address), "dev", INTERFACE])?;
            host.ip(&["link", "set", INTERFACE, "up"])?;
        }
        hosts.iter().try_for_each(Self::wait_for_cable)?;
        Ok(hosts)
    }

    fn ip(&self, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new("ip");
        let ended = output(&mut self.enter(command.args(arguments)));
        if ended.status.success() {
            return Ok(String::from_utf8_lossy(&ended.stdout).into_owned());
        }
        Err(format!("ip {arguments:?}: {}", String::from_utf8_lossy(&ended.stderr).trim()))
    }

    /// The kernel says after up to a second that the other end is there, too;
    /// libfabric's tcp takes another interface before.
    fn wait_for_cable(&self) -> Result<(), String> {
        let start = Instant::now();
        while !self.ip(&["link", "show", "dev", INTERFACE])?.contains("state UP") {
            if start.elapsed() > CABLE_LIMIT {
                return Err(format!("{INTERFACE} is not up after {} s", CABLE_LIMIT.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// The same command, on this host.
    pub fn enter(&self, command: &Command) -> Command {
        let mut inside = Command::new("nsenter");
        inside.args(["--target", &self.keeper.id().to_string(), "--net", "--uts"]);
        inside.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        inside
    }

    /// A program that starts commands on this host as ssh would.
    pub fn agent(&self, folder: &Path) -> PathBuf {
        let path = folder.join("agent");
        let target = self.keeper.id();
        let script = format!("#!/bin/sh\nshift\nexec nsenter --target {target} --net --uts sh -c \"$*\"\n");
        fs::write(&path, script).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a file of ours");
        path
    }

    /// How many bytes came from the cable, and went onto it.
    pub fn traffic(&self) -> [u64; 2] {
        let text = fs::read_to_string(format!("/proc/{}/net/dev", self.keeper.id())).expect("its interfaces");
        let line = text.lines().find_map(|line| line.trim().strip_prefix(INTERFACE)?.strip_prefix(':'));
        let numbers: Vec<u64> =
            line.expect("the cable").split_whitespace().map(|word| word.parse().expect("a number")).collect();
        // Eight columns of what came, then what went; bytes first.
        [numbers[0], numbers[8]]
    }

    /// Ends whatever still runs on this host.
    fn clear(&self) {
        let space = |process: &Path| fs::read_link(process.join("ns/net")).ok();
        let own = space(Path::new("/proc").join(self.keeper.id().to_string()).as_path());
        // Of a keeper that has ended nothing is known.
        let Some(own) = own.filter(|own| Some(own) != space(Path::new("/proc/self")).as_ref()) else {
            return;
        };
        for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let number = process.file_name().to_str().and_then(|name| name.parse().ok());
            if let Some(number) = number
                && space(&process.path()).as_ref() == Some(&own)
            {
                let number = nix::unistd::Pid::from_raw(number);
                let _ended = nix::sys::signal::kill(number, nix::sys::signal::Signal::SIGKILL);
            }
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.clear();
        let _ended = self.keeper.kill();
        let _status = self.keeper.wait();
    }
}
