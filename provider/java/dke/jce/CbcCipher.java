// AES in CBC mode (SP 800-38A), with no padding or PKCS #5 padding (RFC 8018, 6.1.1), over keys
// that are named by reference.
//
// Whole blocks go to the token in self-contained calls; the chaining value between two calls and
// data of less than a block stay here. So a call can be repeated when the agent was restarted in
// between, also in the middle of a stream, and a program that writes a long log does not notice.
package dke.jce;

import java.security.AlgorithmParameters;
import java.security.InvalidAlgorithmParameterException;
import java.security.InvalidKeyException;
import java.security.Key;
import java.security.NoSuchAlgorithmException;
import java.security.ProviderException;
import java.security.SecureRandom;
import java.security.spec.AlgorithmParameterSpec;
import java.security.spec.InvalidParameterSpecException;
import java.util.Arrays;
import java.util.HexFormat;
import javax.crypto.BadPaddingException;
import javax.crypto.Cipher;
import javax.crypto.CipherSpi;
import javax.crypto.IllegalBlockSizeException;
import javax.crypto.NoSuchPaddingException;
import javax.crypto.ShortBufferException;
import javax.crypto.spec.IvParameterSpec;

final class CbcCipher extends CipherSpi {
  enum Padding {
    NONE("NoPadding"),
    PKCS5("PKCS5Padding");

    final String jcaName;

    Padding(String jcaName) {
      this.jcaName = jcaName;
    }
  }

  private static final int BLOCK = 16;
  private static final int REFERENCE_BYTES = 16;
  /** Of one call: well below the largest frame between library and agent. */
  private static final int LARGEST_CALL = 64 * 1024;
  private static final byte[] NOTHING = new byte[0];

  private final DataKeys keys;
  private final Padding padding;
  private boolean decrypting;
  private String reference;
  private long key;
  private byte[] iv;
  /** The ciphertext block before the next one. */
  private byte[] chain;
  /**
   * Input that was not sent to the token yet: less than a block, or one whole block that may be the
   * padding.
   */
  private byte[] rest = NOTHING;

  CbcCipher(DataKeys keys, Padding padding) {
    this.keys = keys;
    this.padding = padding;
  }

  @Override
  protected void engineInit(int mode, Key named, SecureRandom random) throws InvalidKeyException {
    try {
      engineInit(mode, named, (AlgorithmParameterSpec) null, random);
    } catch (InvalidAlgorithmParameterException error) {
      throw new InvalidKeyException(error.getMessage(), error);
    }
  }

  @Override
  protected void engineInit(int mode, Key named, AlgorithmParameters parameters, SecureRandom random)
      throws InvalidKeyException, InvalidAlgorithmParameterException {
    try {
      engineInit(mode, named, parameters == null ? null : parameters.getParameterSpec(IvParameterSpec.class), random);
    } catch (InvalidParameterSpecException error) {
      throw new InvalidAlgorithmParameterException(error);
    }
  }

  @Override
  protected void engineInit(int mode, Key named, AlgorithmParameterSpec parameters, SecureRandom random)
      throws InvalidKeyException, InvalidAlgorithmParameterException {
    if (mode != Cipher.ENCRYPT_MODE && mode != Cipher.DECRYPT_MODE)
      throw new UnsupportedOperationException("this cipher encrypts and decrypts; data keys are wrapped by `new` and `rewrap`");
    byte[] bytes = named.getEncoded();
    if (bytes == null || bytes.length != REFERENCE_BYTES)
      throw new InvalidKeyException("pass the reference of a data key (32 hexadecimal digits) instead of a key");
    String wanted = HexFormat.of().formatHex(bytes);
    byte[] start = ivOf(mode, parameters, random);
    key = keys.get(wanted);
    reference = wanted;
    decrypting = mode == Cipher.DECRYPT_MODE;
    iv = start;
    reset();
  }

  private static byte[] ivOf(int mode, AlgorithmParameterSpec parameters, SecureRandom random)
      throws InvalidAlgorithmParameterException {
    if (parameters == null && mode == Cipher.ENCRYPT_MODE) {
      byte[] made = new byte[BLOCK];
      (random == null ? new SecureRandom() : random).nextBytes(made);
      return made;
    }
    if (parameters instanceof IvParameterSpec spec && spec.getIV().length == BLOCK) return spec.getIV();
    throw new InvalidAlgorithmParameterException("AES/CBC requires an initialization vector of " + BLOCK + " bytes");
  }

  private void reset() {
    chain = iv;
    rest = NOTHING;
  }

  /** Whole blocks through the token; on return the chaining value is that of the next. */
  private byte[] through(byte[] in, int length) {
    byte[] out = new byte[length];
    for (int from = 0; from < length; ) {
      int part = Math.min(LARGEST_CALL, length - from);
      call(in, from, part, out);
      from += part;
      chain = Arrays.copyOfRange(decrypting ? in : out, from - BLOCK, from);
    }
    return out;
  }

  private void call(byte[] in, int from, int length, byte[] out) {
    try {
      Token token = keys.token();
      try {
        token.crypt(decrypting, key, chain, in, from, length, out, from);
      } catch (Token.Refusal error) {
        // Most likely the agent was restarted and has no keys yet. If not, the same error occurs
        // again.
        key = keys.renew(reference, key);
        token.crypt(decrypting, key, chain, in, from, length, out, from);
      }
    } catch (InvalidKeyException | Token.Refusal error) {
      throw new ProviderException(error instanceof InvalidKeyException
          ? error.getMessage()
          : "data key " + reference + ": the token returned " + error.getMessage(), error);
    }
  }

  private static byte[] join(byte[] head, byte[] input, int from, int length) {
    byte[] all = Arrays.copyOf(head, head.length + length);
    if (length > 0) System.arraycopy(input, from, all, head.length, length);
    return all;
  }

  @Override
  protected byte[] engineUpdate(byte[] input, int from, int length) {
    byte[] all = join(rest, input, from, length);
    int whole = all.length - all.length % BLOCK;
    // The last block of padded data is known only at the end.
    if (decrypting && padding == Padding.PKCS5 && whole == all.length && whole > 0) whole -= BLOCK;
    byte[] out = through(all, whole);
    rest = Arrays.copyOfRange(all, whole, all.length);
    return out;
  }

  @Override
  protected byte[] engineDoFinal(byte[] input, int from, int length) throws IllegalBlockSizeException, BadPaddingException {
    try {
      byte[] all = join(rest, input, from, length);
      if (!decrypting && padding == Padding.PKCS5) {
        int filled = all.length;
        all = Arrays.copyOf(all, filled + BLOCK - filled % BLOCK);
        Arrays.fill(all, filled, all.length, (byte) (all.length - filled));
      }
      if (all.length % BLOCK != 0) throw new IllegalBlockSizeException("the length is not a multiple of " + BLOCK + " bytes");
      byte[] out = through(all, all.length);
      return decrypting && padding == Padding.PKCS5 && out.length > 0 ? withoutPadding(out) : out;
    } finally {
      reset();
    }
  }

  private static byte[] withoutPadding(byte[] padded) throws BadPaddingException {
    int count = padded[padded.length - 1] & 0xff;
    boolean good = count >= 1 && count <= BLOCK;
    for (int i = 1; good && i <= count; i++) good = padded[padded.length - i] == count;
    if (!good) throw new BadPaddingException("the data was encrypted with another key, or was changed");
    return Arrays.copyOf(padded, padded.length - count);
  }

  @Override
  protected int engineUpdate(byte[] input, int from, int length, byte[] output, int at) throws ShortBufferException {
    int whole = rest.length + length - (rest.length + length) % BLOCK;
    if (output.length - at < whole) throw new ShortBufferException("the output needs " + whole + " bytes");
    byte[] out = engineUpdate(input, from, length);
    System.arraycopy(out, 0, output, at, out.length);
    return out.length;
  }

  @Override
  protected int engineDoFinal(byte[] input, int from, int length, byte[] output, int at)
      throws ShortBufferException, IllegalBlockSizeException, BadPaddingException {
    // Before any work: the caller may repeat the call with a larger buffer.
    int most = engineGetOutputSize(length);
    int least = decrypting && padding == Padding.PKCS5 ? Math.max(0, most - BLOCK) : most;
    if (output.length - at < least) throw new ShortBufferException("the output needs " + most + " bytes");
    byte[] out = engineDoFinal(input, from, length);
    if (output.length - at < out.length) throw new ShortBufferException("the output needs " + out.length + " bytes");
    System.arraycopy(out, 0, output, at, out.length);
    return out.length;
  }

  @Override
  protected int engineGetOutputSize(int length) {
    int all = rest.length + length;
    return !decrypting && padding == Padding.PKCS5 ? all + BLOCK - all % BLOCK : all;
  }

  @Override
  protected int engineGetBlockSize() {
    return BLOCK;
  }

  @Override
  protected byte[] engineGetIV() {
    return iv == null ? null : iv.clone();
  }

  @Override
  protected AlgorithmParameters engineGetParameters() {
    if (iv == null) return null;
    try {
      AlgorithmParameters parameters = AlgorithmParameters.getInstance("AES");
      parameters.init(new IvParameterSpec(iv));
      return parameters;
    } catch (NoSuchAlgorithmException | InvalidParameterSpecException error) {
      throw new ProviderException(error);
    }
  }

  /** Of the data key that the caller's key represents. */
  @Override
  protected int engineGetKeySize(Key named) {
    return 256;
  }

  @Override
  protected void engineSetMode(String mode) throws NoSuchAlgorithmException {
    if (!mode.equalsIgnoreCase("CBC")) throw new NoSuchAlgorithmException("only the mode CBC is supported");
  }

  @Override
  protected void engineSetPadding(String name) throws NoSuchPaddingException {
    if (!name.equalsIgnoreCase(padding.jcaName)) throw new NoSuchPaddingException("only " + padding.jcaName);
  }
}
