// What a Java program does with the library through SunPKCS11, as it comes with OpenJDK 17: one
// line a step, "name ok", or "name failed" with the reason. The arguments are the provider's
// configuration file and the user's PIN. keytool has made the entries rsa, ec (pairs with
// certificates of their own) and aes before.
import java.math.BigInteger;
import java.net.InetAddress;
import java.security.KeyFactory;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.PrivateKey;
import java.security.Provider;
import java.security.SecureRandom;
import java.security.Security;
import java.security.Signature;
import java.security.interfaces.RSAPublicKey;
import java.security.interfaces.ECPublicKey;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.RSAPublicKeySpec;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.FutureTask;
import javax.crypto.Cipher;
import javax.crypto.KeyAgreement;
import javax.crypto.KeyGenerator;
import javax.crypto.Mac;
import javax.crypto.SecretKey;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.KeyStoreBuilderParameters;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLServerSocket;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;

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
    char[] pin = arguments[1].toCharArray();
    KeyStore store = KeyStore.getInstance("PKCS11", provider);
    store.load(null, pin);

    step("services", () -> {
      String[] expected = {
        "Cipher.AES/CBC/NoPadding", "Cipher.AES/CBC/PKCS5Padding", "Cipher.AES/CTR/NoPadding", "Cipher.AES/ECB/NoPadding",
        "Cipher.AES/GCM/NoPadding", "Cipher.AES_256/GCM/NoPadding", "KeyAgreement.ECDH", "KeyFactory.EC", "KeyFactory.RSA",
        "KeyGenerator.AES", "KeyPairGenerator.EC", "KeyPairGenerator.RSA", "KeyStore.PKCS11", "Mac.HmacSHA1", "Mac.HmacSHA224",
        "Mac.HmacSHA256", "Mac.HmacSHA384", "Mac.HmacSHA512", "MessageDigest.SHA-1", "MessageDigest.SHA-224",
        "MessageDigest.SHA-256", "MessageDigest.SHA-384", "MessageDigest.SHA-512", "SecretKeyFactory.AES", "SecureRandom.PKCS11",
        "Signature.NONEwithECDSA", "Signature.RSASSA-PSS", "Signature.SHA224withRSA", "Signature.SHA256withECDSA",
        "Signature.SHA256withRSA", "Signature.SHA256withRSASSA-PSS", "Signature.SHA384withECDSA", "Signature.SHA384withRSA",
        "Signature.SHA512withECDSA", "Signature.SHA512withRSA", "Signature.SHA512withRSASSA-PSS",
      };
      for (String each : expected) {
        int dot = each.indexOf('.');
        if (provider.getService(each.substring(0, dot), each.substring(dot + 1)) == null) throw new IllegalStateException(each);
      }
    });

    byte[] data = new byte[1000];
    Arrays.fill(data, (byte) 7);
    byte[] value = new byte[32];
    for (int i = 0; i < value.length; i++) value[i] = (byte) i;
    SecretKey key = new SecretKeySpec(value, "AES");
    byte[] iv = new byte[16];

    String[] ciphers = {
      "AES/CBC/NoPadding", "AES/CBC/PKCS5Padding", "AES/ECB/NoPadding", "AES/ECB/PKCS5Padding", "AES/CTR/NoPadding"
    };
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
      ours.init(Cipher.DECRYPT_MODE, key, parameters);
      ours.updateAAD(value);
      check(Arrays.equals(ours.doFinal(sealed), data));
    });
    step("AES/GCM/NoPadding refuses what was changed", () -> {
      Cipher ours = Cipher.getInstance("AES/GCM/NoPadding", provider);
      Cipher theirs = Cipher.getInstance("AES/GCM/NoPadding", "SunJCE");
      byte[] own = Arrays.copyOf(iv, 12);
      own[0] = 9;
      GCMParameterSpec parameters = new GCMParameterSpec(128, own);
      theirs.init(Cipher.ENCRYPT_MODE, key, parameters);
      byte[] sealed = theirs.doFinal(data);
      sealed[5] ^= 1;
      ours.init(Cipher.DECRYPT_MODE, key, parameters);
      boolean refused = false;
      try {
        ours.doFinal(sealed);
      } catch (java.security.GeneralSecurityException expected) {
        refused = true;
      } catch (java.security.ProviderException expected) {
        refused = true;
      }
      check(refused);
    });
    for (String name : new String[] {"HmacSHA1", "HmacSHA224", "HmacSHA256", "HmacSHA384", "HmacSHA512"}) {
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
    for (String name : new String[] {"SHA-1", "SHA-224", "SHA-256", "SHA-384", "SHA-512"}) {
      step(name, () -> {
        MessageDigest ours = MessageDigest.getInstance(name, provider);
        ours.update(data, 0, 700);
        ours.update(data, 700, 300);
        check(Arrays.equals(ours.digest(), MessageDigest.getInstance(name, "SUN").digest(data)));
      });
    }
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
    String[] signatures = {
      "SHA256withRSA", "SHA384withRSA", "SHA512withRSA", "RSASSA-PSS", "SHA256withECDSA", "SHA384withECDSA", "SHA512withECDSA"
    };
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
    for (String type : new String[] {"RSA", "EC"}) {
      step(type + " private key of others", () -> {
        KeyPairGenerator generator = KeyPairGenerator.getInstance(type, type.equals("RSA") ? "SunRsaSign" : "SunEC");
        generator.initialize(type.equals("RSA") ? 2048 : 256);
        KeyPair theirs = generator.generateKeyPair();
        String algorithm = type.equals("RSA") ? "SHA256withRSA" : "SHA256withECDSA";
        Signature ours = Signature.getInstance(algorithm, provider);
        ours.initSign(theirs.getPrivate());
        ours.update(data);
        byte[] made = ours.sign();
        Signature verifier = Signature.getInstance(algorithm, type.equals("RSA") ? "SunRsaSign" : "SunEC");
        verifier.initVerify(theirs.getPublic());
        verifier.update(data);
        check(verifier.verify(made));
      });
    }
    step("ECDH", () -> {
      KeyPairGenerator generator = KeyPairGenerator.getInstance("EC", "SunEC");
      generator.initialize(new ECGenParameterSpec("secp256r1"));
      KeyAgreement agreement = KeyAgreement.getInstance("ECDH", provider);
      agreement.init(pairs[1].getPrivate());
      agreement.doPhase(generator.generateKeyPair().getPublic(), true);
      check(agreement.generateSecret("TlsPremasterSecret") != null);
      // A bare point 04 3f ... looks like an OCTET STRING of 63 bytes.
      ECPublicKey looksWrapped;
      do {
        looksWrapped = (ECPublicKey) generator.generateKeyPair().getPublic();
      } while (looksWrapped.getW().getAffineX().shiftRight(248).intValue() != 0x3f);
      agreement.init(pairs[1].getPrivate());
      agreement.doPhase(looksWrapped, true);
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
      // A fresh one: a key that was used before is the provider's session key already, and it
      // stores nothing then.
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
    for (String alias : new String[] {"rsa", "ec"}) {
      step("KeyStore signs with the key of a certificate: " + alias, () -> {
        String algorithm = alias.equals("rsa") ? "SHA256withRSA" : "SHA256withECDSA";
        PrivateKey own = (PrivateKey) store.getKey(alias, null);
        check(own.getEncoded() == null);
        Signature ours = Signature.getInstance(algorithm, provider);
        ours.initSign(own);
        ours.update(data);
        byte[] made = ours.sign();
        Signature theirs = Signature.getInstance(algorithm, alias.equals("rsa") ? "SunRsaSign" : "SunEC");
        theirs.initVerify(store.getCertificate(alias));
        theirs.update(data);
        check(theirs.verify(made));
      });
    }
    step("KeyStore encrypts with a key that keytool made", () -> {
      SecretKey own = (SecretKey) store.getKey("aes", null);
      Cipher cipher = Cipher.getInstance("AES/CBC/PKCS5Padding", provider);
      cipher.init(Cipher.ENCRYPT_MODE, own, new IvParameterSpec(iv));
      byte[] sealed = cipher.doFinal(data);
      check(!Arrays.equals(Arrays.copyOf(sealed, 1000), data));
      cipher.init(Cipher.DECRYPT_MODE, own, new IvParameterSpec(iv));
      check(Arrays.equals(cipher.doFinal(sealed), data));
    });
    step("KeyStore encrypts in parts with a key that keytool made", () -> {
      for (String name : new String[] {"AES/CBC/PKCS5Padding", "AES/CTR/NoPadding"}) {
        SecretKey own = (SecretKey) store.getKey("aes", null);
        Cipher cipher = Cipher.getInstance(name, provider);
        cipher.init(Cipher.ENCRYPT_MODE, own, new IvParameterSpec(iv));
        java.io.ByteArrayOutputStream sealed = new java.io.ByteArrayOutputStream();
        try (javax.crypto.CipherOutputStream stream = new javax.crypto.CipherOutputStream(sealed, cipher)) {
          for (int at = 0; at < data.length; at += 100) stream.write(data, at, 100);
        }
        cipher.init(Cipher.DECRYPT_MODE, own, new IvParameterSpec(iv));
        java.io.ByteArrayInputStream source = new java.io.ByteArrayInputStream(sealed.toByteArray());
        check(Arrays.equals(new javax.crypto.CipherInputStream(source, cipher).readAllBytes(), data));
      }
    });
    step("eight threads", () -> {
      SecretKey kept = (SecretKey) store.getKey("aes", null);
      PrivateKey signing = (PrivateKey) store.getKey("ec", null);
      List<FutureTask<Boolean>> threads = new ArrayList<>();
      for (int each = 0; each < 8; each++) {
        byte own = (byte) each;
        FutureTask<Boolean> thread = new FutureTask<>(() -> {
          byte[] text = new byte[64];
          Arrays.fill(text, own);
          for (int turn = 0; turn < 20; turn++) {
            SecretKey aes = turn % 4 == 0 ? kept : key;
            Cipher ours = Cipher.getInstance("AES/CBC/NoPadding", provider);
            ours.init(Cipher.ENCRYPT_MODE, aes, new IvParameterSpec(iv));
            byte[] sealed = ours.doFinal(text);
            ours.init(Cipher.DECRYPT_MODE, aes, new IvParameterSpec(iv));
            if (!Arrays.equals(ours.doFinal(sealed), text)) return false;
            Mac mac = Mac.getInstance("HmacSHA256", provider);
            mac.init(new SecretKeySpec(value, "Generic"));
            Mac theirs = Mac.getInstance("HmacSHA256", "SunJCE");
            theirs.init(new SecretKeySpec(value, "Generic"));
            if (!Arrays.equals(mac.doFinal(text), theirs.doFinal(text))) return false;
          }
          Signature signature = Signature.getInstance("SHA256withECDSA", provider);
          signature.initSign(signing);
          signature.update(text);
          byte[] made = signature.sign();
          Signature verifier = Signature.getInstance("SHA256withECDSA", "SunEC");
          verifier.initVerify(store.getCertificate("ec"));
          verifier.update(text);
          return verifier.verify(made);
        });
        threads.add(thread);
        new Thread(thread).start();
      }
      for (FutureTask<Boolean> thread : threads) check(thread.get());
    });
    step("TLS with both keys in the KeyStore", () -> {
      KeyStore trusted = KeyStore.getInstance("PKCS12");
      trusted.load(null, null);
      for (String alias : new String[] {"rsa", "ec"}) trusted.setCertificateEntry(alias, store.getCertificate(alias));
      TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
      trust.init(trusted);
      KeyManagerFactory keys = KeyManagerFactory.getInstance("NewSunX509");
      keys.init(new KeyStoreBuilderParameters(KeyStore.Builder.newInstance(store, new KeyStore.PasswordProtection(pin))));
      SSLContext context = SSLContext.getInstance("TLS");
      context.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
      SSLServerSocket listening =
          (SSLServerSocket) context.getServerSocketFactory().createServerSocket(0, 1, InetAddress.getLoopbackAddress());
      listening.setNeedClientAuth(true);
      FutureTask<Integer> server = new FutureTask<>(() -> {
        try (SSLSocket peer = (SSLSocket) listening.accept()) {
          int first = peer.getInputStream().read();
          peer.getOutputStream().write(first + 1);
          peer.getSession().getPeerCertificates();
          return first;
        }
      });
      new Thread(server).start();
      try (SSLSocket socket = (SSLSocket)
          context.getSocketFactory().createSocket(InetAddress.getLoopbackAddress(), listening.getLocalPort())) {
        socket.getOutputStream().write(41);
        check(socket.getInputStream().read() == 42);
        check(socket.getSession().getProtocol().equals("TLSv1.3"));
      }
      check(server.get() == 41);
      listening.close();
    });
  }
}
