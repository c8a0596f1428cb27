//! Lessons in a file, one JSON object a line, which a person can read and edit.

use std::{
    fs,
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};

use super::{Lesson, LessonError, LessonStore};

/// The most lessons that a file keeps; the oldest go first.
const MOST: usize = 1_000;

/// Lessons in a JSON-lines file.
#[derive(Clone, Debug)]
pub struct LessonFile {
    path: PathBuf,
}

impl LessonFile {
    /// The file at a path. It is made with the first lesson.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn error(&self, what: impl std::fmt::Display) -> LessonError {
        LessonError(format!("{}: {what}", self.path.display()))
    }

    /// Write all lessons anew, so that a crash leaves the old file or the new one.
    fn replace(&self, lessons: &[Lesson]) -> Result<(), LessonError> {
        let mut text = String::new();
        for lesson in lessons {
            text.push_str(&serde_json::to_string(lesson).map_err(|error| self.error(error))?);
            text.push('\n');
        }
        let mut fresh = self.path.clone().into_os_string();
        fresh.push(".new");
        fs::write(&fresh, text).map_err(|error| self.error(error))?;
        fs::rename(&fresh, &self.path).map_err(|error| self.error(error))
    }
}

impl LessonStore for LessonFile {
    fn all(&self) -> Result<Vec<Lesson>, LessonError> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.error(error)),
        };
        text.lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
            .map(|(at, line)| {
                serde_json::from_str(line)
                    .map_err(|error| self.error(format_args!("line {}: {error}", at + 1)))
            })
            .collect()
    }

    fn keep(&self, lesson: &Lesson) -> Result<(), LessonError> {
        let mut lessons = self.all()?;
        if lessons.len() >= MOST {
            lessons.push(lesson.clone());
            let oldest = lessons.len() - MOST;
            return self.replace(lessons.get(oldest..).unwrap_or_default());
        }
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).map_err(|error| self.error(error))?;
        }
        let mut line = serde_json::to_string(lesson).map_err(|error| self.error(error))?;
        line.push('\n');
        // One write, so that two processes do not mix their lines.
        let mut file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.path)
            .map_err(|error| self.error(error))?;
        file.write_all(line.as_bytes()).map_err(|error| self.error(error))
    }

    fn forget(&self, at: usize) -> Result<bool, LessonError> {
        let mut lessons = self.all()?;
        if at >= lessons.len() {
            return Ok(false);
        }
        lessons.remove(at);
        self.replace(&lessons)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planned::config::Strategy;

    fn lesson(task: &str, worked: bool) -> Lesson {
        Lesson {
            task: task.to_owned(),
            strategy: Strategy::React,
            plan: vec!["look".to_owned()],
            worked,
            outcome: "completed".to_owned(),
        }
    }

    #[test]
    fn lessons_outlive_the_process_and_can_be_recalled_and_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data/lessons.jsonl");
        let file = LessonFile::new(&path);
        assert_eq!(file.all().unwrap(), []);
        let (count, rename) = (lesson("count the lines of a file", true), lesson("paint", false));
        file.keep(&count).unwrap();
        file.keep(&rename).unwrap();
        let again = LessonFile::new(&path);
        assert_eq!(again.all().unwrap(), [count.clone(), rename.clone()]);
        assert_eq!(again.recall("count lines of the file b.txt").unwrap(), [count]);
        assert!(again.forget(0).unwrap());
        assert!(!again.forget(5).unwrap());
        assert_eq!(again.all().unwrap(), [rename]);
    }

    #[test]
    fn a_line_that_is_no_lesson_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lessons.jsonl");
        fs::write(&path, "\n{\"task\": 1}\n").unwrap();
        let error = LessonFile::new(&path).all().unwrap_err().to_string();
        assert!(error.contains("lessons.jsonl: line 2: "), "{error}");
    }
}
