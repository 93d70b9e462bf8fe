// A data key at rest: a small text file, named by the key's reference, with the label of its master
// key and the data key wrapped under that (AES key wrap, RFC 3394, which detects every change).
// Nothing in it is secret. The file is the only place where the wrapped key is: include it in every
// backup of its database.
package dke.jce;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.InvalidKeyException;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.Set;

/** @param reference 32 hexadecimal digits, lower case, which a database gets instead of a key */
record KeyFile(String reference, String master, byte[] wrapped) {
  private static final String FIRST_LINE = "dke data key, format 1";
  private static final HexFormat HEX = HexFormat.of();
  /** A file of this format has about 200 bytes. */
  private static final long LARGEST = 4096;

  KeyFile {
    if (!reference.matches("[0-9a-f]{32}")) throw new IllegalArgumentException("a reference must be 32 hexadecimal digits");
    if (!master.matches("[^\\p{Cntrl}]+") || !master.equals(master.strip()))
      throw new IllegalArgumentException("a label must not contain control characters, or start or end with a space");
  }

  static Path pathOf(Path folder, String reference) {
    return folder.resolve(reference + ".key");
  }

  /** Reads and checks; errors name the path. */
  static KeyFile read(Path folder, String reference) throws InvalidKeyException {
    Path path = pathOf(folder, reference);
    Map<String, String> fields = new HashMap<>();
    try {
      if (Files.size(path) > LARGEST) throw notOne(path, "too large");
      String[] lines = Files.readString(path, StandardCharsets.UTF_8).split("\n");
      if (!lines[0].equals(FIRST_LINE)) throw notOne(path, "its first line is not \"" + FIRST_LINE + "\"");
      for (int i = 1; i < lines.length; i++) {
        String[] field = lines[i].split(" = ", 2);
        if (field.length != 2 || fields.put(field[0], field[1]) != null) throw notOne(path, "line " + (i + 1));
      }
    } catch (NoSuchFileException error) {
      throw new InvalidKeyException(
          "there is no data key " + path + ": configure the database with the reference of an existing data key, or restore the file", error);
    } catch (IOException error) {
      throw new InvalidKeyException("the data key " + path + " cannot be read: " + error, error);
    }
    if (!fields.keySet().equals(Set.of("reference", "master", "wrapped"))) throw notOne(path, "fields " + fields.keySet());
    if (!fields.get("reference").equals(reference)) throw notOne(path, "it is the file of " + fields.get("reference"));
    try {
      return new KeyFile(reference, fields.get("master"), HEX.parseHex(fields.get("wrapped")));
    } catch (IllegalArgumentException error) {
      throw notOne(path, error.getMessage());
    }
  }

  private static InvalidKeyException notOne(Path path, String why) {
    return new InvalidKeyException(path + " is not a data key: " + why + "; restore it from a backup");
  }

  /** A new file; an existing one is kept. It is synced to disk on return. */
  void create(Path folder) throws IOException {
    Path path = pathOf(folder, reference);
    if (Files.exists(path)) throw new FileAlreadyExistsException(path.toString());
    replace(folder);
  }

  /** Replaces the file atomically. It is synced to disk on return. */
  void replace(Path folder) throws IOException {
    Path path = pathOf(folder, reference);
    var mode = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));
    Path fresh = Files.createTempFile(folder, "." + reference, ".new", mode);
    try {
      try (FileChannel channel = FileChannel.open(fresh, StandardOpenOption.WRITE)) {
        ByteBuffer bytes = StandardCharsets.UTF_8.encode(text());
        while (bytes.hasRemaining()) channel.write(bytes);
        channel.force(true);
      }
      Files.move(fresh, path, StandardCopyOption.ATOMIC_MOVE);
    } finally {
      Files.deleteIfExists(fresh);
    }
    try (FileChannel directory = FileChannel.open(folder, StandardOpenOption.READ)) {
      directory.force(true);
    }
  }

  private String text() {
    return String.join("\n", FIRST_LINE, "reference = " + reference, "master = " + master, "wrapped = " + HEX.formatHex(wrapped), "");
  }
}
