// The token, called function by function: finds master keys by their label, generates, wraps and
// unwraps data keys, and encrypts with them. The calls go through the binding of OpenJDK's own
// SunPKCS11 provider, below its ciphers: those cannot unwrap with AES key wrap in OpenJDK 17, would
// have the data key as bytes in the heap, and take three calls where one does.
package dke.jce;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.InvalidKeyException;
import java.util.Deque;
import java.util.concurrent.ConcurrentLinkedDeque;
import sun.security.pkcs11.wrapper.CK_ATTRIBUTE;
import sun.security.pkcs11.wrapper.CK_C_INITIALIZE_ARGS;
import sun.security.pkcs11.wrapper.CK_MECHANISM;
import sun.security.pkcs11.wrapper.PKCS11;
import sun.security.pkcs11.wrapper.PKCS11Constants;
import sun.security.pkcs11.wrapper.PKCS11Exception;

final class Token {
  /** The permitted uses of an unwrapped data key. */
  enum Purpose {
    /** Encrypts and decrypts; its value cannot be read. */
    USE,
    /** Is wrapped again under another master key. */
    WRAP,
  }

  /** A refusal of the token: the name of its return value. */
  static final class Refusal extends Exception {
    private static final long serialVersionUID = 1;

    Refusal(PKCS11Exception error) {
      super(error.getMessage(), error);
    }
  }

  private static final long OS_LOCKING_OK = 2;
  private static final int KEY_BYTES = 32;
  /**
   * DKE checks no PIN: the access_token of pkcs11.toml authorizes. SoftHSM2 and others check it.
   */
  private static final char[] PIN = System.getProperty("dke.pin", "any").toCharArray();

  private final PKCS11 pkcs11;
  private final long slot;
  /**
   * The session that owns every key here. It stays open as long as the process, because a session
   * object ends with its session.
   */
  private final long owner;
  /** Idle sessions. */
  private final Deque<Long> idle = new ConcurrentLinkedDeque<>();

  /** Loads the library and logs in. */
  Token(String library) throws InvalidKeyException {
    try {
      CK_C_INITIALIZE_ARGS threads = new CK_C_INITIALIZE_ARGS();
      threads.flags = OS_LOCKING_OK;
      pkcs11 = PKCS11.getInstance(library, "C_GetFunctionList", threads, false);
      long[] slots = pkcs11.C_GetSlotList(true);
      if (slots.length == 0) throw new InvalidKeyException(library + " has no token");
      slot = slots[0];
      owner = openSession();
      login();
    } catch (PKCS11Exception error) {
      throw new InvalidKeyException("the token does not answer: " + error.getMessage()
          + "; to find the reason, run `dke doctor` on this host as this user", error);
    } catch (IOException error) {
      throw new InvalidKeyException(library + " cannot be loaded: " + error.getMessage()
          + "; set its path with -D" + DataKeys.LIBRARY_PROPERTY, error);
    }
  }

  /** CKR_USER_ALREADY_LOGGED_IN: newer JDKs do not name it. */
  private static final long USER_ALREADY_LOGGED_IN = 0x100;

  private long openSession() throws PKCS11Exception {
    return pkcs11.C_OpenSession(slot, PKCS11Constants.CKF_SERIAL_SESSION | PKCS11Constants.CKF_RW_SESSION, null, null);
  }

  private void login() throws PKCS11Exception {
    try {
      pkcs11.C_Login(owner, PKCS11Constants.CKU_USER, PIN);
    } catch (PKCS11Exception error) {
      if (error.getErrorCode() != USER_ALREADY_LOGGED_IN) throw error;
    }
  }

  private static CK_ATTRIBUTE is(long type, boolean value) {
    return new CK_ATTRIBUTE(type, value);
  }

  private static CK_ATTRIBUTE labelled(String label) {
    return new CK_ATTRIBUTE(PKCS11Constants.CKA_LABEL, label.getBytes(StandardCharsets.UTF_8));
  }

  /** One find by label, not a list of everything: a group may have hundreds of master keys. */
  private long master(String label) throws PKCS11Exception, InvalidKeyException {
    long session = openSession();
    try {
      pkcs11.C_FindObjectsInit(session, new CK_ATTRIBUTE[] {
        new CK_ATTRIBUTE(PKCS11Constants.CKA_CLASS, PKCS11Constants.CKO_SECRET_KEY), is(PKCS11Constants.CKA_TOKEN, true),
        labelled(label),
      });
      long[] found = pkcs11.C_FindObjects(session, 1);
      pkcs11.C_FindObjectsFinal(session);
      if (found.length == 1) return found[0];
    } finally {
      pkcs11.C_CloseSession(session);
    }
    throw new InvalidKeyException("the token has no master key \"" + label
        + "\": it was destroyed or deleted, or pkcs11.toml is that of an application in another group");
  }

  /** Creates a master key that can only wrap data keys. The service generates and keeps it. */
  void makeMaster(String label) throws InvalidKeyException {
    try {
      pkcs11.C_GenerateKey(owner, new CK_MECHANISM(PKCS11Constants.CKM_AES_KEY_GEN), new CK_ATTRIBUTE[] {
        labelled(label), new CK_ATTRIBUTE(PKCS11Constants.CKA_VALUE_LEN, KEY_BYTES), is(PKCS11Constants.CKA_TOKEN, true),
        is(PKCS11Constants.CKA_PRIVATE, true), is(PKCS11Constants.CKA_SENSITIVE, true),
        is(PKCS11Constants.CKA_EXTRACTABLE, false), is(PKCS11Constants.CKA_WRAP, true), is(PKCS11Constants.CKA_UNWRAP, true),
        // Not modifiable: so its label is a master key's, which the service keeps unique.
        is(PKCS11Constants.CKA_ENCRYPT, false), is(PKCS11Constants.CKA_DECRYPT, false), is(PKCS11Constants.CKA_MODIFIABLE, false),
      });
    } catch (PKCS11Exception error) {
      String why = "CKR_TEMPLATE_INCONSISTENT".equals(error.getMessage()) ? "another key has this label; use another label" : error.getMessage();
      throw new InvalidKeyException("no master key \"" + label + "\" was created: " + why, error);
    }
  }

  private static CK_ATTRIBUTE[] dataKeyTemplate(Purpose purpose, CK_ATTRIBUTE more) {
    return new CK_ATTRIBUTE[] {
      new CK_ATTRIBUTE(PKCS11Constants.CKA_CLASS, PKCS11Constants.CKO_SECRET_KEY),
      new CK_ATTRIBUTE(PKCS11Constants.CKA_KEY_TYPE, PKCS11Constants.CKK_AES), is(PKCS11Constants.CKA_TOKEN, false),
      is(PKCS11Constants.CKA_SENSITIVE, true), is(PKCS11Constants.CKA_EXTRACTABLE, purpose == Purpose.WRAP),
      is(PKCS11Constants.CKA_ENCRYPT, purpose == Purpose.USE), is(PKCS11Constants.CKA_DECRYPT, purpose == Purpose.USE), more,
    };
  }

  /** A new data key, wrapped. It was never seen outside the agent. */
  byte[] makeDataKey(String master) throws InvalidKeyException {
    try {
      CK_ATTRIBUTE length = new CK_ATTRIBUTE(PKCS11Constants.CKA_VALUE_LEN, KEY_BYTES);
      return wrap(master, pkcs11.C_GenerateKey(
          owner, new CK_MECHANISM(PKCS11Constants.CKM_AES_KEY_GEN), dataKeyTemplate(Purpose.WRAP, length)));
    } catch (PKCS11Exception error) {
      throw new InvalidKeyException("no data key was created: " + error.getMessage(), error);
    }
  }

  /** Wraps a key that was generated or unwrapped for the purpose WRAP, and releases it. */
  byte[] wrap(String master, long dataKey) throws InvalidKeyException {
    try {
      byte[] wrapped = pkcs11.C_WrapKey(owner, new CK_MECHANISM(PKCS11Constants.CKM_AES_KEY_WRAP), master(master), dataKey);
      pkcs11.C_DestroyObject(owner, dataKey);
      return wrapped;
    } catch (PKCS11Exception error) {
      throw new InvalidKeyException("the master key \"" + master + "\" cannot wrap: " + error.getMessage()
          + "; use an enabled master key that `new-master` has created", error);
    }
  }

  /**
   * The data key of a file, as a handle. The token is called each time, so a destroyed or disabled
   * master key opens nothing.
   */
  long unwrap(KeyFile file, Purpose purpose) throws InvalidKeyException {
    String what = "data key " + file.reference() + " cannot be opened: ";
    try {
      return pkcs11.C_UnwrapKey(owner, new CK_MECHANISM(PKCS11Constants.CKM_AES_KEY_WRAP), master(file.master()),
          file.wrapped(), dataKeyTemplate(purpose, is(PKCS11Constants.CKA_PRIVATE, true)));
    } catch (PKCS11Exception error) {
      String why = switch (error.getMessage()) {
        case "CKR_KEY_FUNCTION_NOT_PERMITTED" -> ", which means that it is disabled or cannot unwrap";
        case "CKR_KEY_HANDLE_INVALID", "CKR_UNWRAPPING_KEY_HANDLE_INVALID" -> ", which means that it is destroyed";
        case "CKR_WRAPPED_KEY_INVALID" -> ", which means that the file was wrapped with another key, or was changed";
        default -> "";
      };
      throw new InvalidKeyException(what + "master key \"" + file.master() + "\" returned " + error.getMessage() + why, error);
    } catch (InvalidKeyException error) {
      throw new InvalidKeyException(what + error.getMessage(), error);
    }
  }

  /**
   * Whole blocks under AES-CBC, with one call to the agent; a failed operation leaves nothing
   * behind.
   */
  void crypt(boolean decrypt, long key, byte[] iv, byte[] in, int from, int length, byte[] out, int at) throws Refusal {
    CK_MECHANISM cbc = new CK_MECHANISM(PKCS11Constants.CKM_AES_CBC, iv);
    Long session = idle.pollFirst();
    boolean good = false;
    try {
      if (session == null) session = openSession();
      if (decrypt) {
        pkcs11.C_DecryptInit(session, cbc, key);
        pkcs11.C_Decrypt(session, 0, in, from, length, 0, out, at, length);
      } else {
        pkcs11.C_EncryptInit(session, cbc, key);
        pkcs11.C_Encrypt(session, 0, in, from, length, 0, out, at, length);
      }
      good = true;
    } catch (PKCS11Exception error) {
      throw new Refusal(error);
    } finally {
      if (good) idle.addFirst(session);
      else if (session != null) giveUp(session);
    }
  }

  private void giveUp(long session) {
    try {
      pkcs11.C_CloseSession(session);
    } catch (PKCS11Exception error) {
      // It no longer exists, which is the goal.
    }
  }
}
