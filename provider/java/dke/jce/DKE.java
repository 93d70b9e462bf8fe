// The JCA provider "DKE": AES/CBC for programs that encrypt their files through javax.crypto,
// Apache Derby and HSQLDB before all, with keys that Java never sees. The key of such a program is
// the reference of a data key here (KeyFile); the data key is unwrapped by a master key of the
// token, stays in the agent, and every block is encrypted there.
//
// For OpenJDK 17. Oracle's JDK accepts ciphers only from signed jars.
package dke.jce;

import java.security.Provider;
import java.util.List;
import java.util.Map;

/**
 * Loaded by its class name, as Derby does ({@code encryptionProvider=dke.jce.DKE}), or registered
 * in java.security ({@code security.provider.13=dke.jce.DKE}), as HSQLDB needs it. Nothing is
 * opened before the first key is used.
 */
public final class DKE extends Provider {
  private static final long serialVersionUID = 1;

  /**
   * Derby uses the text after the last dot of the class name as the provider's name, so they must
   * be the same.
   */
  public DKE() {
    super("DKE", "1.0", "AES/CBC with data keys that DKE protects");
    for (CbcCipher.Padding padding : CbcCipher.Padding.values())
      putService(new CipherService(this, padding));
  }

  private static final class CipherService extends Service {
    private final CbcCipher.Padding padding;

    CipherService(Provider provider, CbcCipher.Padding padding) {
      super(provider, "Cipher", "AES/CBC/" + padding.jcaName, CbcCipher.class.getName(), List.of(), Map.of());
      this.padding = padding;
    }

    @Override
    public Object newInstance(Object parameter) {
      return new CbcCipher(DataKeys.ofThisProcess(), padding);
    }
  }
}
