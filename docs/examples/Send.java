// Send a message to a conversation, once, however often it has to be tried. Needs Java 17 or newer, and Jackson for JSON
// (com.fasterxml.jackson.core:jackson-databind).
//
// BASE=http://127.0.0.1:8080 KEY=sk_... java -cp 'jackson/*' Send.java cnv_... order-1001-shipped "It left us today."
// The second argument is the Idempotency-Key: the id that the message has in your own system.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;

public class Send {
  static final int ATTEMPTS = 8;
  static final Set<Integer> AGAIN = Set.of(409, 429, 500, 502, 503, 504);
  static final ObjectMapper JSON = new ObjectMapper();
  static final HttpClient HTTP = HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(10)).build();

  /** The service has refused the message, or was unavailable for too long; the text says why. */
  static class Refused extends Exception {
    Refused(String reason) {
      super(reason);
    }
  }

  /** Returns the message as it was stored. */
  public static JsonNode send(String conversation, String key, String text)
      throws Refused, IOException, InterruptedException {
    var author = Map.of("type", "bot", "name", "Shop");
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(System.getenv("BASE") + "/v3/s2s/conversations/" + conversation + "/messages"))
            .header("Authorization", "Bearer " + System.getenv("KEY"))
            .header("Content-Type", "application/json")
            .header("Idempotency-Key", key) // the same on each attempt
            .timeout(Duration.ofSeconds(30))
            .POST(BodyPublishers.ofString(JSON.writeValueAsString(Map.of("text", text, "author", author))))
            .build();
    String reason = "";
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
      String wanted = "";
      try {
        HttpResponse<String> answer = HTTP.send(request, BodyHandlers.ofString());
        if (answer.statusCode() == 200) return JSON.readTree(answer.body());
        reason = answer.body();
        wanted = answer.headers().firstValue("Retry-After").orElse("");
        if (!AGAIN.contains(answer.statusCode()) || (answer.statusCode() == 409 && wanted.isEmpty())) break;
      } catch (IOException failure) {
        reason = failure.toString(); // no answer: it may have been stored, which the key tells the service
      }
      if (attempt < ATTEMPTS - 1) {
        long pause = wanted.matches("[0-9]{1,6}") ? Long.parseLong(wanted) : Math.min(1L << attempt, 30);
        Thread.sleep(pause * 1000 + ThreadLocalRandom.current().nextInt(1000)); // not all clients at once
      }
    }
    throw new Refused(reason);
  }

  public static void main(String[] args) throws IOException, InterruptedException {
    try {
      System.out.println("sent " + send(args[0], args[1], args[2]).get("id").asText());
    } catch (Refused refusal) {
      System.err.println("not sent: " + refusal.getMessage());
      System.exit(1);
    }
  }
}
