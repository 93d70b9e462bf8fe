// The command of the jar: creates master keys and data keys, and wraps a data key under another
// master key. It prints references and labels, and never has keys.
package dke.jce;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.InvalidKeyException;
import java.security.SecureRandom;
import java.util.HexFormat;

public final class Main {
  private static final String USAGE = """
      java -jar dke-jce.jar <command>

        new-master <label>                     makes a master key on the token
        new <folder> <master>                  makes a data key, wrapped under a master key; prints its reference
        rewrap <folder> <reference> <master>   wraps a data key under another master key; the data stays as it is
        show <folder> <reference>              the master key of a data key

      -Ddke.library=<path> before -jar says where libdke_pkcs11.so is, DKE_PKCS11_CONF where pkcs11.toml is.""";

  private Main() {}

  public static void main(String[] arguments) {
    try {
      if (!run(arguments)) {
        System.err.println(USAGE);
        System.exit(2);
      }
    } catch (IOException | InvalidKeyException | IllegalArgumentException error) {
      System.err.println("dke-jce: " + (error instanceof IOException ? error.toString() : error.getMessage()));
      System.exit(1);
    }
  }

  private static boolean run(String[] arguments) throws IOException, InvalidKeyException {
    String command = (arguments.length == 0 ? "" : arguments[0]) + "/" + Math.max(0, arguments.length - 1);
    switch (command) {
      case "new-master/1" -> newMaster(arguments[1]);
      case "new/2" -> newDataKey(Path.of(arguments[1]), arguments[2]);
      case "rewrap/3" -> rewrap(Path.of(arguments[1]), arguments[2], arguments[3]);
      case "show/2" -> System.out.println(KeyFile.read(Path.of(arguments[1]), arguments[2]).master());
      default -> {
        return false;
      }
    }
    return true;
  }

  private static Token token() throws InvalidKeyException {
    return DataKeys.ofThisProcess().token();
  }

  private static void newMaster(String label) throws InvalidKeyException {
    token().makeMaster(label);
    System.out.println(label);
  }

  private static void newDataKey(Path folder, String master) throws IOException, InvalidKeyException {
    Files.createDirectories(folder);
    byte[] name = new byte[16];
    new SecureRandom().nextBytes(name);
    KeyFile file = new KeyFile(HexFormat.of().formatHex(name), master, token().makeDataKey(master));
    file.create(folder);
    System.out.println(file.reference());
  }

  private static void rewrap(Path folder, String reference, String master) throws IOException, InvalidKeyException {
    KeyFile old = KeyFile.read(folder, reference);
    long dataKey = token().unwrap(old, Token.Purpose.WRAP);
    new KeyFile(reference, master, token().wrap(master, dataKey)).replace(folder);
    System.out.println(reference + ": " + old.master() + " -> " + master);
  }
}
