// Receive Deskwire's webhooks: verify, store, answer, and then work. Needs Java 17 or newer, and Jackson for JSON
// (com.fasterxml.jackson.core:jackson-databind).
//
// WEBHOOK_SECRET=whsec_... java -cp 'jackson/*' Verify.java 9000
// While you rotate the secret, give both: WEBHOOK_SECRET=whsec_new,whsec_old

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Verify {
  static final long TOLERANCE_S = 300;
  static final int BODY_MAX = 1 << 20;
  static final Path INBOX = Path.of(System.getenv().getOrDefault("INBOX", "deskwire-inbox"));
  static final ObjectMapper JSON = new ObjectMapper();
  static final ExecutorService JOBS = Executors.newSingleThreadExecutor();

  /** Whether header, the value of Service-Signature, signs body, the raw bytes as they came. */
  public static boolean verify(String secret, String header, byte[] body, long now) throws GeneralSecurityException {
    String t = "";
    List<byte[]> signatures = new ArrayList<>();
    for (String part : header.split(",")) {
      String[] pair = part.strip().split("=", 2);
      if (pair.length < 2) continue;
      if (pair[0].equals("t")) t = pair[1];
      if (pair[0].equals("v1")) signatures.add(pair[1].getBytes(StandardCharsets.UTF_8));
    }
    if (!t.matches("[0-9]{1,15}") || Math.abs(now - Long.parseLong(t)) > TOLERANCE_S) return false;
    boolean good = false;
    for (String key : secret.split(",")) {
      // The key is the whole secret, whsec_ included. It is not base64: do not decode it.
      Mac mac = Mac.getInstance("HmacSHA256");
      mac.init(new SecretKeySpec(key.strip().getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
      mac.update((t + ".").getBytes(StandardCharsets.UTF_8));
      byte[] expected = HexFormat.of().formatHex(mac.doFinal(body)).getBytes(StandardCharsets.UTF_8);
      for (byte[] each : signatures) good |= MessageDigest.isEqual(expected, each); // in constant time
    }
    return good;
  }

  /** Keeps an event in a file of its own; false if it is there. A table with a unique column does the same. */
  static boolean store(String eventId, byte[] body) throws IOException {
    Files.createDirectories(INBOX);
    Path part = Files.createTempFile(INBOX, "." + eventId, "");
    try {
      Files.write(part, body);
      Files.createLink(INBOX.resolve(eventId + ".json"), part); // whole, and once
      return true;
    } catch (FileAlreadyExistsException known) {
      return false;
    } finally {
      Files.delete(part);
    }
  }

  static void receive(HttpExchange exchange) throws IOException {
    try (exchange) {
      byte[] body = exchange.getRequestBody().readNBytes(BODY_MAX);
      String header = exchange.getRequestHeaders().getFirst("Service-Signature");
      boolean good =
          verify(System.getenv("WEBHOOK_SECRET"), header == null ? "" : header, body, System.currentTimeMillis() / 1000);
      JsonNode event = good ? JSON.readTree(body) : null;
      if (event == null || !event.path("id").asText().matches("evt_[0-9A-Za-z]{1,60}")) {
        exchange.sendResponseHeaders(400, -1);
        return;
      }
      boolean isNew = store(event.get("id").asText(), body);
      if (isNew) JOBS.execute(() -> work(event));
      else System.out.println("again " + event.get("id").asText());
      exchange.sendResponseHeaders(204, -1); // within 5 seconds, whatever the work takes
    } catch (GeneralSecurityException impossible) {
      throw new IllegalStateException(impossible); // every Java has HmacSHA256
    }
  }

  /** Does what your business needs, one event after the other. What a crash leaves undone is in the inbox. */
  static void work(JsonNode event) {
    System.out.printf("verified %s %s %s%n", event.get("type").asText(), event.get("sequence"), event.get("id").asText());
  }

  public static void main(String[] args) throws IOException {
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 0);
    server.setExecutor(Executors.newFixedThreadPool(8));
    server.createContext("/", Verify::receive);
    server.start();
  }
}
