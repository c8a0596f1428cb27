//! `duo serve` as a process of its own, ended with the test.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

use super::Machine;

/// A server that a test started.
pub struct Served {
    child: Child,
    pub url: String,
    pub told: Value,
}

impl Served {
    /// Serve with these arguments, on a free port unless they say otherwise.
    pub fn start(machine: &Machine, args: &[&str]) -> Self {
        let mut all = vec!["serve", "--json"];
        all.extend(args);
        if !args.contains(&"--port") {
            all.extend(["--port", "0"]);
        }
        Self::spawn(machine.command(&all))
    }

    pub fn spawn(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        if line.is_empty() {
            let mut err = String::new();
            child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
            panic!("it is not served: {err}");
        }
        let told: Value = serde_json::from_str(&line).unwrap();
        let url = told["url"].as_str().unwrap().to_owned();
        Self { child, url, told }
    }

    /// The port.
    pub fn port(&self) -> String {
        self.url.rsplit(':').next().unwrap().to_owned()
    }

    /// End it as a person does; what it said on standard error.
    pub fn stop(mut self) -> String {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "it does not stop");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        let mut err = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        err
    }

    /// End it as a crash does.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
