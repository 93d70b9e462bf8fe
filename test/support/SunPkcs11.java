// What a Java program does with the library through SunPKCS11, as it comes with OpenJDK 17: one line a step, "name ok", or
// "name failed" with the reason. The only argument is the provider's configuration file.
import java.math.BigInteger;
import java.security.KeyFactory;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.Provider;
import java.security.SecureRandom;
import java.security.Security;
import java.security.Signature;
import java.security.interfaces.RSAPublicKey;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.RSAPublicKeySpec;
import java.util.Arrays;
import javax.crypto.Cipher;
import javax.crypto.KeyAgreement;
import javax.crypto.KeyGenerator;
import javax.crypto.Mac;
import javax.crypto.SecretKey;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;

public class SunPkcs11 {
  interface Step {
    void run() throws Exception;
  }

  static void step(String name, Step step) {
    try {
      step.run();
      System.out.println(name + " ok");
    } catch (Throwable error) {
      StringBuilder reason = new StringBuilder();
      for (Throwable each = error; each != null; each = each.getCause()) reason.append(" / ").append(each);
      System.out.println(name + " failed" + reason);
    }
  }

  static void check(boolean holds) {
    if (!holds) throw new IllegalStateException("not what was expected");
  }

  public static void main(String[] arguments) throws Exception {
    Provider provider = Security.getProvider("SunPKCS11").configure(arguments[0]);
    Security.addProvider(provider);
    char[] pin = "any".toCharArray();
    KeyStore store = KeyStore.getInstance("PKCS11", provider);
    store.load(null, pin);

    byte[] data = new byte[1000];
    Arrays.fill(data, (byte) 7);
    byte[] value = new byte[32];
    for (int i = 0; i < value.length; i++) value[i] = (byte) i;
    SecretKey key = new SecretKeySpec(value, "AES");
    byte[] iv = new byte[16];

    String[] ciphers = {"AES/CBC/NoPadding", "AES/CBC/PKCS5Padding", "AES/ECB/NoPadding", "AES/CTR/NoPadding"};
    for (String name : ciphers) {
      step(name, () -> {
        byte[] plain = Arrays.copyOf(data, 992);
        boolean ecb = name.contains("ECB");
        Cipher ours = Cipher.getInstance(name, provider);
        Cipher theirs = Cipher.getInstance(name, "SunJCE");
        if (ecb) ours.init(Cipher.ENCRYPT_MODE, key);
        else ours.init(Cipher.ENCRYPT_MODE, key, new IvParameterSpec(iv));
        byte[] first = ours.update(plain, 0, 100);
        byte[] rest = ours.doFinal(plain, 100, plain.length - 100);
        byte[] sealed = Arrays.copyOf(first, first.length + rest.length);
        System.arraycopy(rest, 0, sealed, first.length, rest.length);
        if (ecb) theirs.init(Cipher.DECRYPT_MODE, key);
        else theirs.init(Cipher.DECRYPT_MODE, key, new IvParameterSpec(iv));
        check(Arrays.equals(theirs.doFinal(sealed), plain));
        if (ecb) ours.init(Cipher.DECRYPT_MODE, key);
        else ours.init(Cipher.DECRYPT_MODE, key, new IvParameterSpec(iv));
        check(Arrays.equals(ours.doFinal(sealed), plain));
      });
    }
    step("AES/GCM/NoPadding", () -> {
      Cipher ours = Cipher.getInstance("AES/GCM/NoPadding", provider);
      Cipher theirs = Cipher.getInstance("AES/GCM/NoPadding", "SunJCE");
      GCMParameterSpec parameters = new GCMParameterSpec(128, Arrays.copyOf(iv, 12));
      ours.init(Cipher.ENCRYPT_MODE, key, parameters);
      ours.updateAAD(value);
      byte[] sealed = ours.doFinal(data);
      theirs.init(Cipher.DECRYPT_MODE, key, parameters);
      theirs.updateAAD(value);
      check(Arrays.equals(theirs.doFinal(sealed), data));
    });
    for (String name : new String[] {"HmacSHA1", "HmacSHA256", "HmacSHA384", "HmacSHA512"}) {
      step(name, () -> {
        Mac ours = Mac.getInstance(name, provider);
        Mac theirs = Mac.getInstance(name, "SunJCE");
        SecretKey secret = new SecretKeySpec(value, "Generic");
        ours.init(secret);
        theirs.init(secret);
        ours.update(data, 0, 500);
        check(Arrays.equals(ours.doFinal(Arrays.copyOfRange(data, 500, 1000)), theirs.doFinal(data)));
      });
    }
    step("SHA-256", () -> {
      byte[] ours = MessageDigest.getInstance("SHA-256", provider).digest(data);
      check(Arrays.equals(ours, MessageDigest.getInstance("SHA-256", "SUN").digest(data)));
    });
    step("SecureRandom", () -> {
      byte[] random = new byte[32];
      SecureRandom.getInstance("PKCS11", provider).nextBytes(random);
      check(!Arrays.equals(random, new byte[32]));
    });
    step("KeyGenerator", () -> {
      KeyGenerator generator = KeyGenerator.getInstance("AES", provider);
      generator.init(256);
      SecretKey made = generator.generateKey();
      Cipher cipher = Cipher.getInstance("AES/CBC/PKCS5Padding", provider);
      cipher.init(Cipher.ENCRYPT_MODE, made, new IvParameterSpec(iv));
      byte[] sealed = cipher.doFinal(data);
      cipher.init(Cipher.DECRYPT_MODE, made, new IvParameterSpec(iv));
      check(Arrays.equals(cipher.doFinal(sealed), data));
    });

    KeyPair[] pairs = new KeyPair[2];
    step("RSA pair", () -> {
      KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA", provider);
      generator.initialize(2048);
      pairs[0] = generator.generateKeyPair();
      check(((RSAPublicKey) pairs[0].getPublic()).getPublicExponent().equals(BigInteger.valueOf(65537)));
    });
    step("EC pair", () -> {
      KeyPairGenerator generator = KeyPairGenerator.getInstance("EC", provider);
      generator.initialize(new ECGenParameterSpec("secp256r1"));
      pairs[1] = generator.generateKeyPair();
    });
    String[] signatures = {"SHA256withRSA", "SHA512withRSA", "RSASSA-PSS", "SHA256withECDSA", "SHA512withECDSA"};
    for (String name : signatures) {
      step(name, () -> {
        KeyPair pair = pairs[name.contains("ECDSA") ? 1 : 0];
        Signature ours = Signature.getInstance(name, provider);
        Signature theirs = Signature.getInstance(name, name.contains("ECDSA") ? "SunEC" : "SunRsaSign");
        java.security.spec.AlgorithmParameterSpec pss = new java.security.spec.PSSParameterSpec(
            "SHA-256", "MGF1", java.security.spec.MGF1ParameterSpec.SHA256, 32, 1);
        if (name.equals("RSASSA-PSS")) {
          ours.setParameter(pss);
          theirs.setParameter(pss);
        }
        ours.initSign(pair.getPrivate());
        ours.update(data, 0, 300);
        ours.update(data, 300, 700);
        byte[] made = ours.sign();
        java.security.spec.X509EncodedKeySpec spec = new java.security.spec.X509EncodedKeySpec(pair.getPublic().getEncoded());
        theirs.initVerify(KeyFactory.getInstance(name.contains("ECDSA") ? "EC" : "RSA").generatePublic(spec));
        theirs.update(data);
        check(theirs.verify(made));
        ours.initVerify(pair.getPublic());
        ours.update(data);
        check(ours.verify(made));
        ours.initVerify(pair.getPublic());
        ours.update(value);
        boolean held;
        try {
          held = ours.verify(made);
        } catch (java.security.SignatureException refused) {
          held = false;
        }
        check(!held);
      });
    }
    step("RSA private key of others", () -> {
      KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA", "SunRsaSign");
      generator.initialize(2048);
      KeyPair theirs = generator.generateKeyPair();
      Signature ours = Signature.getInstance("SHA256withRSA", provider);
      ours.initSign(theirs.getPrivate());
      ours.update(data);
      byte[] made = ours.sign();
      Signature verifier = Signature.getInstance("SHA256withRSA", "SunRsaSign");
      verifier.initVerify(theirs.getPublic());
      verifier.update(data);
      check(verifier.verify(made));
    });
    step("ECDH", () -> {
      KeyPairGenerator generator = KeyPairGenerator.getInstance("EC", "SunEC");
      generator.initialize(new ECGenParameterSpec("secp256r1"));
      KeyPair theirs = generator.generateKeyPair();
      KeyAgreement agreement = KeyAgreement.getInstance("ECDH", provider);
      agreement.init(pairs[1].getPrivate());
      agreement.doPhase(theirs.getPublic(), true);
      check(agreement.generateSecret("TlsPremasterSecret") != null);
    });
    step("KeyStore takes a sensitive key of a session into custody", () -> {
      KeyGenerator generator = KeyGenerator.getInstance("AES", provider);
      generator.init(256);
      SecretKey made = generator.generateKey();
      check(made.getEncoded() == null);
      store.setKeyEntry("made here", made, null, null);
      Cipher cipher = Cipher.getInstance("AES/CBC/NoPadding", provider);
      cipher.init(Cipher.ENCRYPT_MODE, made, new IvParameterSpec(iv));
      byte[] plain = Arrays.copyOf(data, 992);
      byte[] encrypted = cipher.doFinal(plain);
      KeyStore again = KeyStore.getInstance("PKCS11", provider);
      again.load(null, pin);
      cipher.init(Cipher.DECRYPT_MODE, again.getKey("made here", null), new IvParameterSpec(iv));
      check(Arrays.equals(cipher.doFinal(encrypted), plain));
      again.deleteEntry("made here");
    });
    step("KeyStore", () -> {
      // A fresh one: a key that was used before is the provider's session key already, and it stores nothing then.
      byte[] fresh = Arrays.copyOf(data, 32);
      store.setKeyEntry("imported", new SecretKeySpec(fresh, "AES"), null, null);
      KeyStore again = KeyStore.getInstance("PKCS11", provider);
      again.load(null, pin);
      check(again.containsAlias("imported"));
      Cipher ours = Cipher.getInstance("AES/CBC/NoPadding", provider);
      ours.init(Cipher.ENCRYPT_MODE, again.getKey("imported", null), new IvParameterSpec(iv));
      Cipher theirs = Cipher.getInstance("AES/CBC/NoPadding", "SunJCE");
      theirs.init(Cipher.DECRYPT_MODE, new SecretKeySpec(fresh, "AES"), new IvParameterSpec(iv));
      byte[] plain = Arrays.copyOf(data, 992);
      check(Arrays.equals(theirs.doFinal(ours.doFinal(plain)), plain));
      again.deleteEntry("imported");
      check(!again.containsAlias("imported"));
    });
  }
}
