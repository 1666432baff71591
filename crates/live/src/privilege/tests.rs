//! Tests of dropping privileges. Each runs in a separate thread, because privileges are attributes of a
//! thread.

use std::fs::File;

use super::*;

#[test]
fn a_settled_thread_has_no_capabilities_and_opens_no_file_or_socket() {
    let (caps_left, socket, file) = std::thread::spawn(|| {
        settle(Role::Forward).expect("this system has filters");
        let caps_left = caps::read(None, CapSet::Effective).map(|set| set.len());
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").map(|_| ()).map_err(|e| e.kind());
        let file = std::fs::File::open("/proc/self/status").map(|_| ()).map_err(|e| e.kind());
        (caps_left, socket, file)
    })
    .join()
    .expect("the thread does not panic");
    let denied = Err(std::io::ErrorKind::PermissionDenied);
    // The filter may forbid the system call that reads capabilities.
    assert!(caps_left.is_err() || caps_left.is_ok_and(|left| left == 0));
    assert_eq!((socket, file), (denied, denied));
}

/// A thread that parses requests of other machines opens no file, not even one that every user may read, and
/// changes no interface.
#[test]
fn a_serving_thread_answers_on_its_socket_and_opens_no_file() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let serving = std::thread::spawn(move || {
        settle(Role::Serve).expect("this system has filters");
        let (mut client, _) = listener.accept().expect("accept is allowed");
        client.set_nonblocking(true).expect("FIONBIO is allowed");
        client.write_all(b"hello").expect("write is allowed");
        let denied = |result: io::Result<()>| result.map_err(|error| error.kind());
        [
            denied(File::open("/etc/hostname").map(drop)),
            denied(File::open("/proc/self/status").map(drop)),
            denied(std::fs::write("/tmp/giveway-serves", "1")),
            denied(std::fs::rename("/tmp/giveway-serves", "/tmp/giveway-served")),
            denied(std::fs::remove_file("/tmp/giveway-serves")),
            denied(std::net::TcpListener::bind("127.0.0.1:0").map(drop)),
            denied(std::process::Command::new("true").status().map(drop)),
        ]
    });
    let mut answer = String::new();
    std::net::TcpStream::connect(at).unwrap().read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "hello");
    assert_eq!(serving.join().unwrap(), [Err(io::ErrorKind::PermissionDenied); 7]);
}

#[test]
fn a_writing_thread_writes_to_its_file_and_opens_no_other() {
    use std::io::Write;
    use std::os::unix::fs::FileExt;
    let mut file = tempfile();
    let writing = std::thread::spawn(move || {
        settle(Role::Write).expect("this system has filters");
        file.write_all(b"one two").expect("write is allowed");
        file.set_len(3).expect("ftruncate is allowed");
        file.write_at(b"3", 3).and_then(|_| file.sync_all()).expect("pwrite64 is allowed");
        (file.metadata().map(|of| of.len()), File::open("/etc/hostname").is_err())
    });
    let (length, refused) = writing.join().unwrap();
    assert_eq!((length.unwrap(), refused), (4, true));
}

fn tempfile() -> File {
    let path = std::env::temp_dir().join(format!("giveway-writes-{}", std::process::id()));
    let file = File::create(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    file
}

/// As root: the thread gets another user, and the other threads stay root.
#[test]
fn only_the_calling_thread_changes_its_user() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let other = Identity { user: 65_534, group: 65_534 };
    let ids = || {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>()
        };
        (line("Uid:"), line("Gid:"), line("Groups:"))
    };
    let became = std::thread::spawn(move || {
        become_user(other).expect("root may change the user");
        ids()
    });
    let four = |number: &str| vec![number.to_owned(); 4];
    assert_eq!(became.join().unwrap(), (four("65534"), four("65534"), Vec::new()));
    assert_eq!(ids().0, four("0"));
}

/// As root: outputs are created with the ids of another user, and where only root can change names, root
/// gives them to that user.
#[test]
fn outputs_belong_to_their_user_and_are_created_with_its_rights() {
    use std::os::unix::fs::{MetadataExt, chown, symlink};
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let user = Identity { user: 65_534, group: 65_534 };
    let dir = std::env::temp_dir().join(format!("giveway-outputs-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    let (roots, theirs, others) = (dir.join("roots"), dir.join("theirs"), dir.join("others"));
    for (folder, owner) in [(&roots, 0), (&theirs, 65_534), (&others, 12_345)] {
        std::fs::create_dir_all(folder).unwrap();
        chown(folder, Some(owner), Some(owner)).unwrap();
    }
    let has = outputs::as_user(user, || Ok(caps::read(None, CapSet::Permitted).map(|set| set.len())));
    assert_eq!(has.unwrap().unwrap(), 0, "capabilities");
    assert!(!caps::read(None, CapSet::Effective).unwrap().is_empty(), "the caller keeps them");
    let owner =
        |path: &std::path::Path| std::fs::symlink_metadata(path).map(|of| (of.uid(), of.mode() & 0o777));
    for folder in [&roots, &theirs] {
        drop(outputs::file(&folder.join("file"), Some(user), 0o600).unwrap());
        assert_eq!(owner(&folder.join("file")).unwrap(), (65_534, 0o600), "{}", folder.display());
        // It may be there already.
        drop(outputs::file(&folder.join("file"), Some(user), 0o600).unwrap());
        let new = outputs::folder(&folder.join("new/folder"), Some(user)).unwrap();
        assert!(matches!(new, outputs::OutputFolder::Writable(_)));
        assert_eq!(owner(&folder.join("new/folder")).unwrap(), (65_534, 0o700), "{}", folder.display());
    }
    let denied = |result: io::Result<()>| result.unwrap_err().kind() == io::ErrorKind::PermissionDenied;
    assert!(denied(outputs::file(&others.join("file"), Some(user), 0o600).map(drop)));
    assert!(denied(outputs::folder(&others.join("folder"), Some(user)).map(drop)));
    std::fs::create_dir(others.join("empty")).unwrap();
    assert!(denied(outputs::folder(&others.join("empty"), Some(user)).map(drop)), "others can rename it");
    std::fs::write(roots.join("secret"), "secret").unwrap();
    symlink(roots.join("secret"), theirs.join("link")).unwrap();
    symlink(&roots, theirs.join("above")).unwrap();
    assert!(outputs::file(&theirs.join("link"), Some(user), 0o600).is_err());
    assert!(denied(outputs::file(&theirs.join("above/new-file"), Some(user), 0o600).map(drop)));
    assert!(outputs::folder(&theirs.join("above"), Some(user)).is_err());
    assert_eq!(std::fs::read_to_string(roots.join("secret")).unwrap(), "secret");
    assert_eq!(owner(&roots).unwrap().0, 0);
    std::fs::create_dir(roots.join("empty")).unwrap();
    let known = outputs::folder(&roots.join("empty"), Some(user)).unwrap();
    assert!(matches!(known, outputs::OutputFolder::OfRoot(_)), "the caller decides about its content");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_file_set_aside_gets_its_name_back_unless_it_is_replaced() {
    let dir = std::env::temp_dir().join(format!("giveway-aside-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir(&dir).unwrap();
    let (path, foreign) = (dir.join("a.pcapng"), dir.join("a.pcapng.earlier"));
    std::fs::write(&foreign, "foreign").unwrap();
    assert!(outputs::Aside::rename(&path, None).unwrap().is_none(), "there is no file");
    std::fs::write(&path, "earlier").unwrap();
    let all = || {
        let read =
            |entry: io::Result<std::fs::DirEntry>| std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let mut all: Vec<String> = std::fs::read_dir(&dir).unwrap().map(read).collect();
        all.sort();
        all.join(" ")
    };
    let aside = outputs::Aside::rename(&path, None).unwrap();
    std::fs::write(&path, "new").unwrap();
    assert_eq!(all(), "earlier foreign new");
    drop(aside);
    assert_eq!(all(), "earlier foreign");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "earlier");
    let aside = outputs::Aside::rename(&path, None).unwrap().unwrap();
    std::fs::write(&path, "new").unwrap();
    aside.remove().unwrap();
    assert_eq!(all(), "foreign new");
    std::fs::remove_dir_all(dir).unwrap();
}

/// As root: what a user could not rename stays where it is.
#[test]
fn a_file_is_set_aside_with_the_rights_of_its_user() {
    use std::os::unix::fs::{chown, symlink};
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let user = Identity { user: 65_534, group: 65_534 };
    let dir = std::env::temp_dir().join(format!("giveway-rights-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    let (theirs, others) = (dir.join("theirs"), dir.join("others"));
    for (folder, owner) in [(&theirs, 65_534), (&others, 12_345)] {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("a"), "1").unwrap();
        chown(folder, Some(owner), Some(owner)).unwrap();
    }
    symlink(&others, theirs.join("above")).unwrap();
    for refused in [others.join("a"), theirs.join("above/a")] {
        let error = outputs::Aside::rename(&refused, Some(user)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{}: {error}", refused.display());
        assert!(refused.is_file());
    }
    drop(outputs::Aside::rename(&theirs.join("a"), Some(user)).unwrap().unwrap());
    // The folder is exchanged in the meantime: only the one that was opened changes.
    let aside = outputs::Aside::rename(&theirs.join("a"), Some(user)).unwrap().unwrap();
    std::fs::rename(&theirs, dir.join("moved")).unwrap();
    symlink(&others, &theirs).unwrap();
    aside.remove().unwrap();
    assert_eq!(std::fs::read_dir(dir.join("moved")).unwrap().count(), 1, "the link");
    assert_eq!(std::fs::read_dir(&others).unwrap().count(), 1);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn files_are_opened_only_in_the_configured_folders() {
    let dir = std::env::temp_dir().join(format!("giveway-folders-{}", std::process::id()));
    let (read, other) = (dir.join("read"), dir.join("other"));
    for folder in [&read, &other] {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("a"), "1").unwrap();
    }
    let folders = [Folder::open(&read).unwrap()];
    let tried = std::thread::spawn(move || {
        // Landlock requires this attribute from a thread without CAP_SYS_ADMIN.
        // SAFETY: no pointers are passed.
        unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        if files::restrict(&folders).is_err() {
            return None;
        }
        Some([
            std::fs::read_to_string(read.join("a")).is_ok(),
            std::fs::write(read.join("a"), "2").is_ok(),
            std::fs::create_dir(read.join("d")).is_ok(),
            std::fs::read_to_string(other.join("a")).is_ok(),
            std::fs::remove_file(other.join("a")).is_ok(),
        ])
    });
    let tried = tried.join().unwrap();
    std::fs::remove_dir_all(dir).unwrap();
    // `None`: this kernel has no Landlock.
    if let Some(tried) = tried {
        assert_eq!(tried, [true, false, false, false, false]);
    }
}

#[test]
fn a_watching_thread_reads_files_changes_none_and_runs_no_program() {
    let dir = std::env::temp_dir().join(format!("giveway-settled-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("a"), "1").unwrap();
    // Only this test calls `confine`, because later calls have no effect.
    let folders = vec![Folder::open(&dir).unwrap()];
    assert!(confine(Confinement { user: None, folders }));
    let folder = dir.clone();
    let (read, changed, ran) = std::thread::spawn(move || {
        // An error on kernels without Landlock.
        let _ = settle(Role::Watch);
        let changed = [
            std::fs::create_dir(folder.join("c")).is_ok(),
            std::fs::rename(folder.join("a"), folder.join("b")).is_ok(),
            std::fs::remove_file(folder.join("a")).is_ok(),
        ];
        let ran = std::process::Command::new("true").status().map(|_| ());
        (std::fs::read_to_string(folder.join("a")), changed, ran)
    })
    .join()
    .expect("the thread does not panic");
    std::fs::remove_dir_all(dir).unwrap();
    assert_eq!(read.unwrap(), "1");
    assert_eq!(changed, [false; 3]);
    assert!(ran.is_err(), "running a program is denied");
}

/// A program as a bridge starts it: it may change files in its folder only, and has the environment of the
/// named variables.
#[test]
fn a_started_program_changes_files_in_its_folder_only() {
    let dir = std::env::temp_dir().join(format!("giveway-started-{}", std::process::id()));
    let (own, other) = (dir.join("own"), dir.join("other"));
    for folder in [&own, &other] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let script = format!("touch a; touch {}/b 2>&-; env > c", other.display());
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let folder = giveway_files::Dir::open(&own).unwrap();
    let words = ["-c".as_ref(), script.as_ref()];
    let sh = std::path::Path::new("/bin/sh");
    let mut child = start::program(sh, &words, &["HOME", "NO_SUCH"], None, &folder, &theirs.into()).unwrap();
    child.wait().unwrap();
    drop(ours);
    let may_change_others = other.join("b").exists();
    let variables = std::fs::read_to_string(own.join("c")).unwrap();
    assert!(own.join("a").exists() && !variables.contains("CARGO"), "{variables}");
    std::fs::remove_dir_all(dir).unwrap();
    let has_landlock = std::thread::spawn(|| {
        // SAFETY: no pointers are passed.
        unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        files::restrict(&[]).is_ok()
    });
    assert_eq!(may_change_others, !has_landlock.join().unwrap());
}
