// SPDX-License-Identifier: Apache-2.0

//! Uses the file API of Rust's run-time in the working directory.
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufRead, BufReader, BufWriter, IoSlice, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{chown, symlink, DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

fn main() -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o750).create("rust/deep/er")?;
    let one = "rust/deep/one";
    fs::write(one, vec![7u8; 100_000])?;
    let mut f = OpenOptions::new().append(true).open(one)?;
    writeln!(f, "appended")?;
    f.sync_all()?;
    fs::create_dir("rust/out")?;
    fs::copy(one, "rust/out/copy")?;
    fs::hard_link(one, "rust/out/hard")?;
    symlink("../deep/one", "rust/out/soft")?;
    fs::read_link("rust/out/soft")?;
    fs::canonicalize("rust/out/soft")?;
    fs::rename("rust/out/hard", "rust/out/hard2")?;
    fs::set_permissions(one, Permissions::from_mode(0o640))?;
    let mut n = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open("rust/out/new")?;
    n.write_all(b"hello")?;
    n.write_vectored(&[IoSlice::new(b"a"), IoSlice::new(b"bc")])?;
    n.write_all_at(b"far", 50_000)?;
    n.seek(SeekFrom::Start(100))?;
    n.write_all(&[1; 5000])?;
    n.seek(SeekFrom::End(-10))?;
    n.set_len(40_000)?;
    n.read_at(&mut [0; 100], 39_950)?;
    n.set_permissions(Permissions::from_mode(0o644))?;
    n.set_modified(SystemTime::UNIX_EPOCH + Duration::new(1_500_000_000, 123_456_789))?;
    let m = n.try_clone()?;
    m.sync_data()?;
    let mut b = BufWriter::with_capacity(1000, File::create("rust/out/buffered")?);
    for i in 0..3000 { writeln!(b, "line {i}")?; }
    b.flush()?;
    BufReader::new(File::open("rust/out/buffered")?).lines().count();
    // Copies by the kernel.
    let mut from = File::open(one)?;
    from.seek(SeekFrom::Start(1000))?;
    let mut to = File::create("rust/out/ranged")?;
    io::copy(&mut from, &mut to)?;
    from.rewind()?;
    io::copy(&mut (&mut from).take(777), &mut to)?;
    let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut cin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || -> io::Result<()> { io::copy(&mut File::open("rust/deep/one")?, &mut cin)?; Ok(()) });
    io::copy(child.stdout.as_mut().unwrap(), &mut File::create("rust/out/spliced")?)?;
    writer.join().unwrap()?;
    child.wait()?;
    Command::new("sh").args(["-c", "cat; echo err >&2"]).stdin(File::open(one)?).stdout(File::create("rust/out/stdout")?).stderr(File::create("rust/out/stderr")?).status()?;
    let threads: Vec<_> = (0..8).map(|i| std::thread::spawn(move || {
        let name = format!("rust/out/t{i}");
        fs::write(&name, vec![i as u8; 10_000 * i]).unwrap();
        fs::rename(&name, name.clone() + ".done").unwrap();
    })).collect();
    for t in threads { t.join().unwrap(); }
    for i in 0..60 { fs::create_dir_all(format!("rust/many/{}", i % 6))?; fs::write(format!("rust/many/{}/{i}", i % 6), "x")?; }
    for e in fs::read_dir("rust/many")? { e?.metadata()?; }
    fs::remove_dir_all("rust/many/3")?;
    fs::remove_file("rust/many/2/2")?;
    let _ = fs::remove_dir("rust/many/1");
    let _ = fs::create_dir("rust/many");
    let _ = File::open("rust/none");
    chown("rust/out/copy", None, None)?;
    let tmp = "rust/out/.tmp";
    fs::write(tmp, "atomic")?;
    fs::rename(tmp, "rust/out/copy")?;
    fs::exists("rust/out/copy")?;
    std::env::set_current_dir("rust/out")?;
    fs::write("relative", "here")?;
    Ok(())
}
