// Runs AES/CBC cases through the JCA provider DKE: one a line of standard input, "mode padding
// reference iv pieces data" with data and IV in hexadecimal and pieces the lengths of the updates
// (comma-separated, "-" for none; what is left goes to doFinal). Prints the result in hexadecimal,
// or the class and message of what was thrown. "threads reference reference" ends the run with
// eight threads that encrypt and decrypt under two keys until the input ends, and prints how many
// round trips were right and how many were not.
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.security.GeneralSecurityException;
import java.security.ProviderException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Random;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import javax.crypto.Cipher;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;

public class JceCases {
  private static final HexFormat HEX = HexFormat.of();

  public static void main(String[] arguments) throws Exception {
    try (BufferedReader lines = new BufferedReader(new InputStreamReader(System.in))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        String[] words = line.split(" ");
        if (words[0].equals("threads")) threads(lines, words[1], words[2]);
        else System.out.println(one(words));
        System.out.flush();
      }
    }
  }

  private static Cipher cipher(int mode, String padding, String reference, byte[] iv) throws GeneralSecurityException {
    Cipher cipher = Cipher.getInstance("AES/CBC/" + padding, "DKE");
    cipher.init(mode, new SecretKeySpec(HEX.parseHex(reference), "AES"), new IvParameterSpec(iv));
    return cipher;
  }

  private static String one(String[] words) {
    try {
      int mode = words[0].equals("encrypt") ? Cipher.ENCRYPT_MODE : Cipher.DECRYPT_MODE;
      byte[] data = words.length > 5 ? HEX.parseHex(words[5]) : new byte[0];
      Cipher cipher = cipher(mode, words[1], words[2], HEX.parseHex(words[3]));
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      int at = 0;
      if (!words[4].equals("-")) {
        for (String piece : words[4].split(",")) {
          int length = Integer.parseInt(piece);
          byte[] part = cipher.update(data, at, length);
          if (part != null) out.writeBytes(part);
          at += length;
        }
      }
      out.writeBytes(cipher.doFinal(data, at, data.length - at));
      return HEX.formatHex(out.toByteArray());
    } catch (GeneralSecurityException | ProviderException error) {
      return error.getClass().getSimpleName() + ": " + error.getMessage();
    }
  }

  private static void threads(BufferedReader lines, String... references) throws Exception {
    AtomicBoolean end = new AtomicBoolean();
    AtomicInteger right = new AtomicInteger();
    AtomicInteger wrong = new AtomicInteger();
    Thread[] all = new Thread[8];
    for (int i = 0; i < all.length; i++) {
      String reference = references[i % 2];
      String other = references[(i + 1) % 2];
      Random random = new Random(i);
      all[i] = new Thread(() -> {
        while (!end.get()) {
          try {
            byte[] iv = new byte[16];
            byte[] data = new byte[16 * (1 + random.nextInt(256))];
            random.nextBytes(iv);
            random.nextBytes(data);
            byte[] sealed = cipher(Cipher.ENCRYPT_MODE, "NoPadding", reference, iv).doFinal(data);
            byte[] opened = cipher(Cipher.DECRYPT_MODE, "NoPadding", reference, iv).doFinal(sealed);
            byte[] mistaken = cipher(Cipher.DECRYPT_MODE, "NoPadding", other, iv).doFinal(sealed);
            boolean good = Arrays.equals(data, opened) && !Arrays.equals(data, mistaken);
            (good ? right : wrong).incrementAndGet();
          } catch (GeneralSecurityException | ProviderException error) {
            wrong.incrementAndGet();
            System.err.println(error);
          }
        }
      });
      all[i].start();
    }
    for (String line = "started"; line != null; line = lines.readLine()) System.out.println(line + " " + right.get());
    end.set(true);
    for (Thread each : all) each.join();
    System.out.println("right " + (right.get() > 0) + ", wrong " + wrong.get());
  }
}
