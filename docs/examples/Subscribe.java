// Follow every event of a project. Needs Java 17 or newer, and Jackson for JSON
// (com.fasterxml.jackson.core:jackson-databind).
// BASE=http://127.0.0.1:8080 KEY=sk_... java -cp 'jackson/*' Subscribe.java [FILE]
// This runs on your server: the server key must never reach a customer.
// In FILE it keeps its place: started again, it goes on behind the last event that it has worked through.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.net.http.WebSocket;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

public class Subscribe implements WebSocket.Listener {
  static final String BASE = System.getenv("BASE");
  static final String CONSUMER = "mirror-" + ProcessHandle.current().pid() + "-" + System.currentTimeMillis(); // new at each start
  static final Set<Integer> FOR_GOOD = Set.of(4001, 4007, 4009); // a takeover, or a revoked key
  static final long SILENCE_MS = 180_000; // pings go both ways far more often
  static final ObjectMapper JSON = new ObjectMapper();
  static final HttpClient HTTP = HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(10)).build();
  static final Set<String> RECENT = new LinkedHashSet<>(); // what was under way when a connection broke comes twice
  static String resume = "auto";
  static Path file;

  final JsonNode project;
  final StringBuilder text = new StringBuilder();
  final CompletableFuture<Integer> ended = new CompletableFuture<>();
  volatile long heard = System.currentTimeMillis();

  Subscribe(JsonNode project) {
    this.project = project;
  }

  static JsonNode call(String method, String path, Object body) throws IOException, InterruptedException {
    HttpRequest.BodyPublisher written =
        body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(JSON.writeValueAsString(body));
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(BASE + path))
            .header("Authorization", "Bearer " + System.getenv("KEY"))
            .header("Content-Type", "application/json")
            .timeout(Duration.ofSeconds(30))
            .method(method, written)
            .build();
    var response = HTTP.send(request, BodyHandlers.ofString());
    if (response.statusCode() != 200) throw new IOException(method + " " + path + ": " + response.statusCode());
    return JSON.readTree(response.body());
  }

  @Override
  public CompletionStage<?> onText(WebSocket socket, CharSequence part, boolean last) {
    heard = System.currentTimeMillis();
    text.append(part);
    if (last) {
      try {
        take(socket, JSON.readTree(text.toString()));
      } catch (IOException | InterruptedException failure) {
        ended.completeExceptionally(failure);
      }
      text.setLength(0);
    }
    socket.request(1);
    return null;
  }

  @Override
  public CompletionStage<?> onPing(WebSocket socket, ByteBuffer message) {
    heard = System.currentTimeMillis(); // the library answers with the pong, which confirms what has arrived
    socket.request(1);
    return null;
  }

  @Override
  public CompletionStage<?> onPong(WebSocket socket, ByteBuffer message) {
    heard = System.currentTimeMillis();
    socket.request(1);
    return null;
  }

  @Override
  public CompletionStage<?> onClose(WebSocket socket, int code, String reason) {
    ended.complete(code);
    return null;
  }

  @Override
  public void onError(WebSocket socket, Throwable error) {
    ended.completeExceptionally(error);
  }

  /** Takes in a message of the Pusher protocol; towards clients data is JSON in a text. */
  void take(WebSocket socket, JsonNode message) throws IOException, InterruptedException {
    JsonNode data = message.get("data").isTextual() ? JSON.readTree(message.get("data").asText()) : message.get("data");
    switch (message.get("event").asText()) {
      case "pusher:connection_established" -> subscribe(socket, data.get("socket_id").asText());
      case "pusher_internal:subscription_succeeded" -> {
        resume = "auto"; // from now on the service knows the place
        System.out.println("subscribed " + data); // gap: fetch the conversations again
      }
      case "pusher:subscription_error" -> System.out.println("refused " + data);
      case "pusher:ping" -> socket.sendText("{\"event\":\"pusher:pong\",\"data\":{}}", true);
      case "pusher:error" -> System.err.println(data);
      default -> work(data);
    }
  }

  void subscribe(WebSocket socket, String socketId) throws IOException, InterruptedException {
    String channel = "private-project-" + project.get("id").asText();
    var fields = Map.of("socket_id", socketId, "channel_name", channel, "consumerId", CONSUMER, "resume", resume);
    String auth = call("POST", "/v3/s2s/stream/auth", fields).get("auth").asText();
    var data = Map.of("channel", channel, "auth", auth);
    socket.sendText(JSON.writeValueAsString(Map.of("event", "pusher:subscribe", "data", data)), true);
  }

  static void work(JsonNode event) throws IOException {
    String id = event.get("id").asText();
    if (!RECENT.add(id)) return;
    if (RECENT.size() > 1000) RECENT.remove(RECENT.iterator().next());
    System.out.println(event.get("type").asText() + " " + event.get("sequence") + " " + id); // your work
    if (file == null) return;
    Path written = Files.writeString(Path.of(file + ".new"), id);
    Files.move(written, file, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
  }

  /** Follows one connection until it ends, and returns its close code. */
  static int follow(JsonNode project) throws InterruptedException, ExecutionException {
    Subscribe listener = new Subscribe(project);
    String url = BASE.replaceFirst("http", "ws") + "/app/" + project.get("streamKey").asText();
    WebSocket socket =
        HTTP.newWebSocketBuilder().buildAsync(URI.create(url + "?protocol=7&client=java&version=1"), listener).get();
    try {
      while (true) {
        try {
          return listener.ended.get(10, TimeUnit.SECONDS);
        } catch (TimeoutException goingOn) {
          if (System.currentTimeMillis() - listener.heard > SILENCE_MS) return 4201;
          // The library tells nobody of a connection that breaks while a message is worked on; what is sent on it fails.
          socket.sendPing(ByteBuffer.allocate(0)).exceptionally(failure -> {
            listener.ended.completeExceptionally(failure);
            return socket;
          });
        }
      }
    } finally {
      socket.abort();
    }
  }

  public static void main(String[] args) throws IOException, InterruptedException {
    file = args.length > 0 ? Path.of(args[0]) : null;
    if (file != null && Files.exists(file)) resume = Files.readString(file);
    JsonNode project = call("GET", "/v3/s2s/project", null);
    for (long pause = 1000; ; pause = Math.min(2 * pause, 30_000)) {
      long began = System.currentTimeMillis();
      try {
        int code = follow(project);
        if (FOR_GOOD.contains(code)) throw new UncheckedIOException(new IOException("over for good: " + code));
      } catch (ExecutionException failure) {
        System.err.println(failure.getCause());
      }
      if (System.currentTimeMillis() - began > 60_000) pause = 1000;
      Thread.sleep(pause / 2 + ThreadLocalRandom.current().nextLong(pause)); // not all consumers at once
    }
  }
}
