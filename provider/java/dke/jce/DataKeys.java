// The data keys that this process uses: by reference, unwrapped once, and again after a restart of
// the agent, because session keys end with their agent.
package dke.jce;

import java.nio.file.Path;
import java.security.InvalidKeyException;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

final class DataKeys {
  static final String LIBRARY_PROPERTY = "dke.library";
  static final String KEYS_PROPERTY = "dke.keys";
  static final String USUAL_LIBRARY = "/opt/oracle/extapi/64/hsm/dke/1.0/libdke_pkcs11.so";

  private static final class OfThisProcess {
    static final DataKeys KEYS = new DataKeys();
  }

  /**
   * The handles of keys in the agent. The library never reuses a handle, so a stale one is refused
   * and never names another key.
   */
  private final Map<String, Long> unwrapped = new ConcurrentHashMap<>();
  private volatile Token token;

  static DataKeys ofThisProcess() {
    return OfThisProcess.KEYS;
  }

  static String library() {
    return System.getProperty(LIBRARY_PROPERTY, USUAL_LIBRARY);
  }

  private static Path folder() throws InvalidKeyException {
    String folder = System.getProperty(KEYS_PROPERTY);
    if (folder == null) throw new InvalidKeyException("the folder of the data keys is not set: start java with -D" + KEYS_PROPERTY + "=<folder>");
    return Path.of(folder);
  }

  /**
   * Loads the library with the first key, so that a registered but unused provider costs nothing.
   */
  Token token() throws InvalidKeyException {
    if (token == null) {
      synchronized (this) {
        if (token == null) token = load();
      }
    }
    return token;
  }

  private static Token load() throws InvalidKeyException {
    try {
      return new Token(library());
    } catch (LinkageError error) {
      throw new InvalidKeyException("start java with"
          + " --add-exports=jdk.crypto.cryptoki/sun.security.pkcs11.wrapper=ALL-UNNAMED", error);
    }
  }

  long get(String reference) throws InvalidKeyException {
    Long key = unwrapped.get(reference);
    return key == null ? renew(reference, null) : key;
  }

  /** Unwraps again, unless another thread has done so since {@code stale} was in use. */
  synchronized long renew(String reference, Long stale) throws InvalidKeyException {
    Long current = unwrapped.get(reference);
    if (current != null && !current.equals(stale)) return current;
    long key = token().unwrap(KeyFile.read(folder(), reference), Token.Purpose.USE);
    unwrapped.put(reference, key);
    return key;
  }
}
