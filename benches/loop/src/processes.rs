//! The processes of a measurement: one mock server and one arm.

use std::{
    env,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, ChildStdout, Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use bench_arm::{Orders, Report};

use crate::{
    arms::OwnArm,
    mock::Served,
    plan::{Extra, Plan},
};

/// An arm as a program that can be started.
#[derive(Clone, Debug)]
pub(crate) struct Contender {
    /// Its name in the table.
    pub(crate) name: String,
    program: PathBuf,
    arguments: Vec<String>,
}

impl Contender {
    /// Every arm of a plan, the reference first.
    pub(crate) fn all(plan: &Plan) -> Result<Vec<Self>> {
        let this = env::current_exe().context("finding this program")?;
        let own = OwnArm::ALL.map(|arm| Self {
            name: arm.name().to_owned(),
            program: this.clone(),
            arguments: vec!["arm".into(), arm.name().into()],
        });
        let extra = plan.extras.iter().map(|Extra { name, program }| Self {
            name: name.clone(),
            program: program.clone(),
            arguments: Vec::new(),
        });
        Ok(own.into_iter().chain(extra).collect())
    }

    /// Run the arm to its end.
    pub(crate) fn measure(&self, orders: &Orders) -> Result<Report> {
        let output = Command::new(&self.program)
            .args(&self.arguments)
            .args(orders.to_args())
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("starting {}", self.program.display()))?;
        ensure!(output.status.success(), "arm {} ended with {}", self.name, output.status);
        serde_json::from_slice(&output.stdout)
            .with_context(|| format!("arm {} did not print a report", self.name))
    }
}

/// A running mock server. It ends with its standard input, so it also ends when this process does.
#[derive(Debug)]
pub(crate) struct Server {
    process: Child,
    output: BufReader<ChildStdout>,
    port: u16,
}

impl Server {
    /// Start one on a free port; `held` conversations meet in it.
    pub(crate) fn start(held: usize) -> Result<Self> {
        let mut process = Command::new(env::current_exe().context("finding this program")?)
            .arg("serve")
            .arg(format!("--held={held}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting the mock server")?;
        let output = process.stdout.take().context("the server has no output")?;
        let mut output = BufReader::new(output);
        let mut line = String::new();
        output.read_line(&mut line)?;
        let port = line.trim().parse().context("the mock server did not say its port")?;
        Ok(Self { process, output, port })
    }

    /// Where arms reach it.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// End it and hear what it served.
    pub(crate) fn stop(mut self) -> Result<Served> {
        drop(self.process.stdin.take());
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        self.process.wait()?;
        serde_json::from_str(&line).context("the mock server did not say what it served")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended already unless a measurement failed; then nothing is left to tell.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}
