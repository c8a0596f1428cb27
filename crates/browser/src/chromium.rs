//! The browser's processes: found, started, and ended whatever happens to us.
//!
//! They are one process group with a folder of its own, for the profile unless one is kept, and for
//! everything that lasts as long as the browser. A tiny watcher holds one end of a pipe: if the other
//! end closes without a word, this process is gone, and the watcher kills the group and deletes the
//! folder. It is there before either of them, so that no moment is left to be killed in.

use std::{
    fs::File,
    io::Write as _,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use rustix::process::{Pid, Signal, geteuid, kill_process_group};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

use crate::error::{BrowserError, Result};

/// How long it may take to come up, on a machine that is busy.
const START: Duration = Duration::from_secs(30);

/// `read` fails when the pipe closes without a line. The first line is the group; without it, a
/// browser that is just being started is known by its folder, where there is a `/proc`. Processes
/// that are being killed may still write for a moment.
const WATCH: &str = r#"
if read -r group; then read -r word && exit; kill -KILL "-$group"; fi
for try in 1 2 3 4 5 6 7 8 9 10; do
    sleep 0.2
    [ -n "$group" ] || for process in /proc/[0-9]*; do
        grep -qsF -- "--user-data-dir=$1" "$process/cmdline" && kill -KILL "${process#/proc/}"
    done
    rm -rf "$1" 2>/dev/null
    [ -e "$1" ] || [ "$try" -lt 3 ] || exit
done
"#;

/// Names under which distributions and makers install it.
const NAMES: &[&str] = &[
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
];

/// Places outside of `PATH`.
const PLACES: &[&str] = &[
    "/usr/lib/chromium/chromium",
    "/opt/google/chrome/chrome",
    "/snap/bin/chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
];

/// How a browser is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The program; looked for where it usually is otherwise.
    pub program: Option<PathBuf>,
    /// Whether a person can see it.
    pub window: Window,
    /// The folder of a profile that is kept, such as one that is logged in somewhere. Otherwise
    /// each browser has a profile of its own, which is deleted at its end.
    pub profile: Option<PathBuf>,
    /// Width and height of a page, in pixels.
    pub size: (u32, u32),
    /// Further switches of the program's command line.
    pub switches: Vec<String>,
}

impl Default for Launch {
    fn default() -> Self {
        Self {
            program: None,
            window: Window::Hidden,
            profile: None,
            size: (1280, 800),
            switches: Vec::new(),
        }
    }
}

/// Whether a browser has a window on a screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Window {
    /// None: it works in the background.
    #[default]
    Hidden,
    /// A person sees it, and can take over.
    Shown,
}

/// Where the browser is: as given, by `CHROME_PATH`, or in the usual places.
pub fn find_browser(program: Option<&Path>) -> Result<PathBuf> {
    let named =
        program.map(Path::to_owned).or_else(|| std::env::var_os("CHROME_PATH").map(PathBuf::from));
    if let Some(named) = named {
        if named.is_file() {
            return Ok(named);
        }
        return Err(BrowserError::NotInstalled {
            looked: format!("{} is no file", named.display()),
        });
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let in_path = NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let mut places = in_path.chain(PLACES.iter().map(PathBuf::from));
    places.find(|place| place.is_file()).ok_or_else(|| BrowserError::NotInstalled {
        looked: format!("looked for {} in PATH and the usual places", NAMES.join(", ")),
    })
}

/// A running browser. Dropping it ends all its processes.
#[derive(Debug)]
pub(crate) struct Chromium {
    pub(crate) address: String,
    child: Child,
    group: Option<Pid>,
    lifeline: Option<File>,
    /// Deleted with it.
    folder: PathBuf,
}

impl Chromium {
    /// Start one.
    pub(crate) async fn start(launch: &Launch) -> Result<Self> {
        let program = find_browser(launch.program.as_deref())?;
        let not_started = |error: std::io::Error| BrowserError::NotStarted(error.to_string());
        let name = format!("duologue-browser-{:012x}", fastrand::u64(..1 << 48));
        let folder = std::env::temp_dir().join(name);
        let lifeline = watch(&folder);
        std::fs::DirBuilder::new().mode(0o700).create(&folder).map_err(not_started)?;
        let profile = launch.profile.clone().unwrap_or_else(|| folder.join("profile"));
        std::fs::create_dir_all(&profile).map_err(not_started)?;
        let mut command = Command::new(&program);
        command
            .args(switches(launch))
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        // It is ended by a kill, so what it puts beside its profile would stay.
        if has_room_for_a_socket(&folder) {
            command.env("TMPDIR", &folder);
        }
        let mut child = command
            .spawn()
            .map_err(|error| BrowserError::NotStarted(format!("{}: {error}", program.display())))?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let stderr = child.stderr.take();
        let mut this = Self { address: String::new(), child, group, lifeline, folder };
        if let Some(group) = group {
            this.tell_the_watcher(&format!("{}\n", group.as_raw_nonzero()));
        }
        let Some(stderr) = stderr else {
            return Err(BrowserError::NotStarted("its output cannot be read".into()));
        };
        this.address = tokio::time::timeout(START, listening_address(stderr))
            .await
            .map_err(|_| BrowserError::NotStarted(format!("not ready after {START:?}")))??;
        Ok(this)
    }

    /// Where everything is that ends with it.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn tell_the_watcher(&mut self, line: &str) {
        // A pipe takes a line at once, and without a watcher nobody need know.
        let told = self.lifeline.as_mut().map(|lifeline| lifeline.write_all(line.as_bytes()));
        if !matches!(told, Some(Ok(()))) {
            self.lifeline = None;
        }
    }

    /// Whether its main process has ended, and how.
    pub(crate) fn ended(&mut self) -> Option<String> {
        match self.child.try_wait() {
            Ok(Some(status)) => {
                // What is left of the group goes now, while the number is still its own.
                if let Some(group) = self.group.take() {
                    let _ = kill_process_group(group, Signal::KILL);
                }
                Some(format!("it ended with {status}"))
            }
            Ok(None) => None,
            Err(error) => Some(error.to_string()),
        }
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            // An error means that none is left.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.start_kill();
        // Its processes may still write for a moment after the kill.
        for _ in 0..20 {
            if std::fs::remove_dir_all(&self.folder).is_ok() || !self.folder.exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        // A word lets the watcher go without a kill: the number may belong to others by now.
        self.tell_the_watcher("over\n");
    }
}

/// Whether Chromium can have the folder for its temporary files: the path of a socket in it is short
/// on every system (104 bytes on some).
fn has_room_for_a_socket(folder: &Path) -> bool {
    let socket = folder.join("org.chromium.Chromium.XXXXXX/SingletonSocket");
    socket.as_os_str().len() < 104
}

/// The switches of the command line.
fn switches(launch: &Launch) -> Vec<String> {
    let (width, height) = launch.size;
    let mut list: Vec<String> = [
        "--remote-debugging-port=0",
        "--no-first-run",
        "--no-default-browser-check",
        // It speaks with nobody but the pages that it is sent to.
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-default-apps",
        "--disable-domain-reliability",
        "--disable-sync",
        "--disable-quic",
        "--metrics-recording-only",
        "--no-pings",
        "--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,AutofillServerCommunication,CertificateTransparencyComponentUpdater",
        // Timers and frames run as if somebody looked.
        "--disable-background-timer-throttling",
        "--disable-backgrounding-occluded-windows",
        "--disable-renderer-backgrounding",
        "--disable-hang-monitor",
        "--disable-search-engine-choice-screen",
        "--disable-dev-shm-usage",
        "--password-store=basic",
        "--use-mock-keychain",
        "--mute-audio",
        "--force-color-profile=srgb",
        // Each origin in a process of its own, so that a page cannot read another's memory.
        "--site-per-process",
    ]
    .map(str::to_owned)
    .into();
    if launch.window == Window::Hidden {
        list.extend(["--headless=new".into(), "--disable-gpu".into(), "--hide-scrollbars".into()]);
    }
    // The sandbox cannot be made by root; everybody else has it.
    if geteuid().is_root() {
        list.push("--no-sandbox".into());
    }
    list.push(format!("--window-size={width},{height}"));
    list.extend(launch.switches.iter().cloned());
    list
}

/// The address that it prints when it is ready. What else it prints is read on and dropped, so
/// that it never waits for us.
async fn listening_address(stderr: tokio::process::ChildStderr) -> Result<String> {
    let mut lines = BufReader::new(stderr).lines();
    let mut last = String::new();
    while let Ok(Some(line)) = lines.next_line().await {
        if let Some((_, address)) = line.split_once("DevTools listening on ") {
            let address = address.trim().to_owned();
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return Ok(address);
        }
        if !line.trim().is_empty() {
            last = line;
        }
    }
    Err(BrowserError::NotStarted(match last.is_empty() {
        true => "it ended at once".into(),
        false => format!("it ended at once, saying: {}", last.trim()),
    }))
}

/// Start the watcher of a folder; what it listens to.
fn watch(folder: &Path) -> Option<File> {
    let mut watcher = Command::new("/bin/sh")
        .args(["-c", WATCH, "duologue-lifeline"])
        .arg(folder)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // In a group of its own, an interrupt from the terminal does not end it.
        .process_group(0)
        .spawn()
        .ok()?;
    let line = watcher.stdin.take()?.into_owned_fd().ok()?;
    // Waits for it, so that it leaves no zombie.
    tokio::spawn(async move {
        let _ = watcher.wait().await;
    });
    Some(File::from(line))
}
