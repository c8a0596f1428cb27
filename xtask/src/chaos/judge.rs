//! Whether what was promised was kept: nothing that was accepted is lost, nothing is done twice, and
//! every end fits the book of deeds.

use std::collections::BTreeMap;

use serde_json::Value;

use super::sender::{SenderEnd, Sent, end_of};

/// A server's side of the story, once all is over.
pub(super) struct Case<'a> {
    /// What its clients were told.
    pub(super) sent: &'a [Sent],
    /// What it says of all its tasks.
    pub(super) tasks: &'a [Value],
    /// The book of deeds: a job in each line.
    pub(super) deeds: &'a str,
    /// How many faults of the model each job met.
    pub(super) faults: &'a BTreeMap<String, u64>,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Tasks whose client was told their id.
    pub(super) accepted: usize,
    /// Tasks that did their job.
    pub(super) done: usize,
    /// Tasks whose deed was interrupted: once or not at all.
    pub(super) perhaps: usize,
    /// Tasks whose model spoke instead of working.
    pub(super) blather: usize,
    /// Tasks that ended with a failure that was told.
    pub(super) failed: usize,
    /// Tasks that were given up before anything was done, because they could not be written down.
    pub(super) given_up: usize,
    /// Lines in the book of deeds.
    pub(super) deeds: usize,
    /// What is wrong.
    pub(super) wrong: Vec<String>,
}

impl Case<'_> {
    /// Judge it.
    pub(super) fn verdict(&self) -> Verdict {
        let mut verdict = Verdict::default();
        let mut deeds = BTreeMap::<&str, usize>::new();
        for line in self.deeds.lines() {
            *deeds.entry(line).or_default() += 1;
            verdict.deeds += 1;
        }
        for (job, times) in &deeds {
            if *times > 1 {
                verdict.wrong.push(format!("{job} was done {times} times"));
            }
            if !self.sent.iter().any(|sent| sent.job == *job) {
                verdict.wrong.push(format!("{job} was done and nobody asked for it"));
            }
        }
        let tasks: BTreeMap<&str, &Value> =
            self.tasks.iter().filter_map(|task| Some((task.get("id")?.as_str()?, task))).collect();
        for sent in self.sent {
            self.judge_sent(sent, &tasks, &mut verdict);
        }
        for task in self.tasks {
            self.judge_task(task, &deeds, &mut verdict);
        }
        verdict
    }

    /// What a client was told must still be so.
    fn judge_sent(&self, sent: &Sent, tasks: &BTreeMap<&str, &Value>, verdict: &mut Verdict) {
        let Some(id) = &sent.task else { return };
        verdict.accepted += 1;
        let job = &sent.job;
        let Some(task) = tasks.get(id.as_str()) else {
            return verdict.wrong.push(format!("{job} was accepted as task {id}, which is gone"));
        };
        if let SenderEnd::Told { state, answer } = &sent.end {
            let (now, answer_now) = end_of(task);
            if (state, answer) != (&now, &answer_now) {
                let what =
                    format!("{job} was told as {state} {answer:?} and is {now} {answer_now:?}");
                verdict.wrong.push(what);
            }
        }
    }

    /// A task, whether or not its client heard of it, must have come to an end that fits.
    fn judge_task(&self, task: &Value, deeds: &BTreeMap<&str, usize>, verdict: &mut Verdict) {
        let said = task.pointer("/history/0/parts/0/text").and_then(Value::as_str);
        let job = said.and_then(|said| Some(said.strip_prefix("Please do ")?.split_once('.')?.0));
        let Some(job) = job else {
            return verdict.wrong.push(format!("nobody sent this: {task}"));
        };
        let times = deeds.get(job).copied().unwrap_or_default();
        let (state, answer) = end_of(task);
        let mut wrong = |what: String| {
            verdict
                .wrong
                .push(format!("{job} ({}): {what}", task.get("id").unwrap_or(&Value::Null)));
        };
        match state.as_str() {
            "TASK_STATE_COMPLETED" if answer == format!("Done: {job}.") => {
                if times != 1 {
                    wrong(format!("it says done and was done {times} times"));
                }
                verdict.done += 1;
            }
            "TASK_STATE_COMPLETED" if answer == format!("Perhaps done: {job}.") => {
                verdict.perhaps += 1;
            }
            "TASK_STATE_COMPLETED" if answer == format!("Blather about {job}.") => {
                if times != 0 {
                    wrong("its model spoke instead of working, and yet it was done".into());
                }
                verdict.blather += 1;
            }
            "TASK_STATE_FAILED" => {
                if answer.is_empty() {
                    wrong("it failed without a word".into());
                }
                if !self.faults.contains_key(job) {
                    wrong(format!("it failed, and its model did nothing wrong: {answer}"));
                }
                verdict.failed += 1;
            }
            "TASK_STATE_CANCELED" if !self.was_accepted(job) => {
                if times != 0 {
                    wrong("it was given up after it was done".into());
                }
                verdict.given_up += 1;
            }
            "TASK_STATE_SUBMITTED" | "TASK_STATE_WORKING" => {
                wrong(format!("it never ended: {state}"));
            }
            _ => wrong(format!("it came to a wrong end: {state} {answer:?}")),
        }
    }

    fn was_accepted(&self, job: &str) -> bool {
        self.sent.iter().any(|sent| sent.job == job && sent.task.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sent(task: Option<&str>) -> Sent {
        Sent { job: "job-a1".into(), task: task.map(str::to_owned), end: SenderEnd::Gone }
    }

    fn task(state: &str, answer: &str) -> Value {
        json!({
            "id": "t1", "status": {"state": format!("TASK_STATE_{state}")},
            "artifacts": [{"parts": [{"text": answer}]}],
            "history": [{"parts": [{"text": "Please do job-a1."}]}],
        })
    }

    fn verdict(sent: Sent, tasks: &[Value], deeds: &str) -> Verdict {
        let faults = BTreeMap::new();
        Case { sent: &[sent], tasks, deeds, faults: &faults }.verdict()
    }

    #[test]
    fn a_job_that_was_done_once_and_says_so_is_right() {
        let verdict = verdict(sent(Some("t1")), &[task("COMPLETED", "Done: job-a1.")], "job-a1\n");
        let right = Verdict { accepted: 1, done: 1, deeds: 1, ..Verdict::default() };
        assert_eq!(verdict, right);
    }

    #[test]
    fn an_accepted_task_that_is_gone_is_found() {
        assert_eq!(
            verdict(sent(Some("t1")), &[], "").wrong,
            ["job-a1 was accepted as task t1, which is gone"]
        );
    }

    #[test]
    fn what_is_done_twice_is_found_whatever_it_says() {
        for answer in ["Done: job-a1.", "Perhaps done: job-a1."] {
            let tasks = [task("COMPLETED", answer)];
            let verdict = verdict(sent(None), &tasks, "job-a1\njob-a1\n");
            assert!(verdict.wrong.contains(&"job-a1 was done 2 times".to_owned()));
        }
    }

    #[test]
    fn an_interrupted_deed_may_be_done_once_or_not_at_all() {
        for deeds in ["", "job-a1\n"] {
            let tasks = [task("COMPLETED", "Perhaps done: job-a1.")];
            let verdict = verdict(sent(Some("t1")), &tasks, deeds);
            assert_eq!((verdict.perhaps, verdict.wrong.len()), (1, 0));
        }
    }

    #[test]
    fn a_lie_a_hang_and_an_unexplained_failure_are_found() {
        for (state, answer) in [
            ("COMPLETED", "Done: job-a1."),
            ("COMPLETED", "Done: job-b2."),
            ("WORKING", ""),
            ("INPUT_REQUIRED", "May I?"),
            ("FAILED", "the model failed"),
            ("CANCELED", ""),
        ] {
            let verdict = verdict(sent(Some("t1")), &[task(state, answer)], "");
            assert_eq!(verdict.wrong.len(), 1, "{state} {answer}: {verdict:?}");
        }
    }

    #[test]
    fn what_a_client_was_told_stays_so() {
        let told = SenderEnd::Told { state: "TASK_STATE_FAILED".into(), answer: "no".into() };
        let sent = Sent { end: told, ..sent(Some("t1")) };
        let verdict = verdict(sent, &[task("COMPLETED", "Done: job-a1.")], "job-a1\n");
        assert_eq!(verdict.wrong.len(), 1, "{verdict:?}");
    }
}
