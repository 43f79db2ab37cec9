// SPDX-License-Identifier: Apache-2.0

import java.io.*;
import java.nio.*;
import java.nio.channels.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.nio.file.attribute.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.zip.*;

/** Uses the file API of Java's run-time in the working directory. */
public class UseFiles {
    public static void main(String[] a) throws Exception {
        Path d = Files.createDirectories(Path.of("java/deep/er"));
        Path t = Files.createTempDirectory(Path.of("java"), "tmp");
        Path f = Files.writeString(d.resolve("one"), "one\n".repeat(1000));
        Files.writeString(f, "more\n", StandardOpenOption.APPEND);
        Files.copy(f, d.resolve("two"), StandardCopyOption.COPY_ATTRIBUTES);
        try {
            Files.copy(f, d.resolve("two"));
        } catch (FileAlreadyExistsException expected) {
        }
        Files.copy(f, d.resolve("two"), StandardCopyOption.REPLACE_EXISTING);
        Files.move(d.resolve("two"), t.resolve("moved"), StandardCopyOption.ATOMIC_MOVE);
        Files.createLink(d.resolve("hard"), f);
        Files.createSymbolicLink(d.resolve("soft"), Path.of("one"));
        Files.createSymbolicLink(d.resolve("dangling"), Path.of("../nowhere"));
        Files.readSymbolicLink(d.resolve("soft"));
        Files.setPosixFilePermissions(f, PosixFilePermissions.fromString("rw-r-----"));
        Files.setLastModifiedTime(f, FileTime.fromMillis(1_600_000_000_123L));
        try {
            Files.setAttribute(f, "user:note", "hello".getBytes());
            UserDefinedFileAttributeView v = Files.getFileAttributeView(f, UserDefinedFileAttributeView.class);
            for (String n : v.list()) {
                ByteBuffer b = ByteBuffer.allocate(v.size(n));
                v.read(n, b);
            }
            v.write("other", ByteBuffer.wrap(new byte[100]));
            v.delete("note");
        } catch (UnsupportedOperationException | FileSystemException e) {
        }
        Files.getFileStore(f).getUsableSpace();
        Files.probeContentType(f);
        Files.isSameFile(f, d.resolve("hard"));
        Files.mismatch(f, t.resolve("moved"));
        f.toRealPath();

        try (FileChannel c = FileChannel.open(t.resolve("channel"), StandardOpenOption.CREATE_NEW, StandardOpenOption.READ, StandardOpenOption.WRITE, StandardOpenOption.SPARSE)) {
            c.write(ByteBuffer.wrap("start".getBytes()));
            c.write(new ByteBuffer[] {ByteBuffer.wrap(new byte[10]), ByteBuffer.wrap("gather".getBytes())});
            c.write(ByteBuffer.wrap("far".getBytes()), 100_000);
            c.position(50);
            try (FileChannel in = FileChannel.open(f, StandardOpenOption.READ)) {
                in.transferTo(10, 2000, c);
                c.transferFrom(in, 8192, 3000);
            }
            MappedByteBuffer m = c.map(FileChannel.MapMode.READ_WRITE, 4096, 65536);
            for (int i = 0; i < 65536; i += 1000) m.put(i, (byte) i);
            m.force();
            m.put(3, (byte) 99);
            try (FileLock l = c.lock(0, 100, false)) {
                c.force(true);
            }
            c.tryLock(200, 10, true).release();
            c.truncate(90_000);
            ByteBuffer[] into = {ByteBuffer.allocate(10), ByteBuffer.allocateDirect(100)};
            c.position(0);
            c.read(into);
            c.read(ByteBuffer.allocate(10), 95_000);
        }
        try (AsynchronousFileChannel c = AsynchronousFileChannel.open(t.resolve("async"), StandardOpenOption.CREATE, StandardOpenOption.WRITE, StandardOpenOption.READ)) {
            List<Future<Integer>> all = new ArrayList<>();
            for (int i = 0; i < 20; i++) all.add(c.write(ByteBuffer.wrap(("block " + i).getBytes()), i * 4096L));
            for (Future<Integer> x : all) x.get();
            c.read(ByteBuffer.allocate(100), 4096).get();
        }
        try (RandomAccessFile r = new RandomAccessFile(t.resolve("random").toFile(), "rwd")) {
            r.writeUTF("text");
            r.setLength(10_000);
            r.seek(5000);
            r.writeLong(42);
            r.seek(0);
            r.readUTF();
            r.skipBytes(100);
        }
        try (PrintWriter p = new PrintWriter(new FileWriter(t.resolve("printed").toFile(), true))) {
            for (int i = 0; i < 3000; i++) p.println(i);
        }
        try (BufferedReader r = Files.newBufferedReader(t.resolve("printed"))) {
            r.lines().count();
        }
        try (ObjectOutputStream o = new ObjectOutputStream(new FileOutputStream(t.resolve("object").toFile()))) {
            o.writeObject(new ArrayList<>(List.of("a", "b")));
        }
        Path zip = t.resolve("z.zip");
        try (FileSystem z = FileSystems.newFileSystem(zip, Map.of("create", "true"))) {
            Files.copy(f, z.getPath("one"));
            Files.createDirectory(z.getPath("dir"));
            Files.writeString(z.getPath("dir/x"), "x");
        }
        try (FileSystem z = FileSystems.newFileSystem(zip)) {
            Files.copy(z.getPath("dir/x"), t.resolve("x"));
        }
        try (GZIPOutputStream g = new GZIPOutputStream(new FileOutputStream(t.resolve("g.gz").toFile()))) {
            g.write(Files.readAllBytes(f));
        }
        for (int i = 0; i < 50; i++) Files.createFile(Files.createDirectories(t.resolve("many/" + i % 5)).resolve("f" + i));
        try (DirectoryStream<Path> s = Files.newDirectoryStream(t.resolve("many"))) {
            if (s instanceof SecureDirectoryStream<Path> secure) {
                for (Path p : s) {
                    try (SecureDirectoryStream<Path> below = secure.newDirectoryStream(p.getFileName())) {
                        below.deleteFile(Path.of("f" + p.getFileName()));
                        below.move(Path.of("f" + (5 + Integer.parseInt(p.getFileName().toString()))), secure, Path.of("up" + p.getFileName()));
                        try (SeekableByteChannel c = below.newByteChannel(Path.of("new"), Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE))) {
                            c.write(ByteBuffer.wrap(new byte[33]));
                        }
                    }
                }
            }
        }
        WatchService w = FileSystems.getDefault().newWatchService();
        d.register(w, StandardWatchEventKinds.ENTRY_CREATE, StandardWatchEventKinds.ENTRY_DELETE);
        Files.createFile(d.resolve("watched"));
        WatchKey k = w.poll(5, TimeUnit.SECONDS);
        if (k != null) k.pollEvents();
        w.close();
        try (var walk = Files.walk(Path.of("java"))) {
            walk.count();
        }
        Path del = Files.createTempFile(t, "delete", ".me", PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
        try (OutputStream o = Files.newOutputStream(del, StandardOpenOption.DELETE_ON_CLOSE)) {
            o.write(1);
        }
        File old = new File(t.toFile(), "old");
        old.createNewFile();
        old.renameTo(new File(t.toFile(), "renamed"));
        new File(t.toFile(), "renamed").setReadOnly();
        new File(t.toFile(), "renamed").setLastModified(1_500_000_000_000L);
        File exit = File.createTempFile("exit", null, t.toFile());
        exit.deleteOnExit();
        ExecutorService pool = Executors.newFixedThreadPool(4);
        for (int i = 0; i < 8; i++) {
            int n = i;
            pool.submit(() -> Files.writeString(t.resolve("thread" + n), "x".repeat(n * 1000), StandardCharsets.UTF_8));
        }
        pool.shutdown();
        pool.awaitTermination(20, TimeUnit.SECONDS);
        try (var walk = Files.walk(t.resolve("many"))) {
            for (Path p : walk.sorted(Comparator.reverseOrder()).toList()) if (!p.endsWith("new")) try { Files.delete(p); } catch (DirectoryNotEmptyException e) { }
        }
        Process p = new ProcessBuilder("sh", "-c", "cat; echo done").redirectInput(f.toFile()).redirectOutput(t.resolve("out").toFile()).redirectErrorStream(true).start();
        p.waitFor();
    }
}
