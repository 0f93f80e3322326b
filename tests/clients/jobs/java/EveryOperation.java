// Calls every recorded operation with the generated client: `java EveryOperation URL TOKEN CASSETTE`.
// Prints JSON: for each call and each event its error, or the answer in the client's own JSON.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Parameter;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import org.openapitools.client.ApiClient;

public final class EveryOperation {
  private static final String MODELS = "org.openapitools.client.model.";
  private static final String APIS = "org.openapitools.client.api.";
  private static ObjectMapper json;

  public static void main(String[] arguments) throws Exception {
    ApiClient client = new ApiClient();
    client.updateBaseUri(arguments[0]);
    client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + arguments[1]));
    json = client.getObjectMapper();
    JsonNode tour = json.readTree(new File(arguments[2]));
    ObjectNode found = json.createObjectNode();
    for (JsonNode each : tour.get("exchanges")) {
      found.set(each.get("name").asText(), outcome(() -> call(client, each)));
    }
    for (JsonNode each : tour.get("events")) {
      Class<?> model = Class.forName(MODELS + each.get("model").asText());
      found.set(each.get("name").asText(), outcome(() -> json.readValue(each.get("body").toString(), model)));
    }
    System.out.println(json.writeValueAsString(found));
  }

  private static Object call(ApiClient client, JsonNode exchange) throws Exception {
    String[] words = exchange.get("tag").asText().split("\\W+");
    StringBuilder name = new StringBuilder();
    for (String word : words) {
      name.append(word.substring(0, 1).toUpperCase(Locale.ROOT));
      name.append(word.equals("API") ? "pi" : word.substring(1));
    }
    Class<?> api = Class.forName(APIS + name + "Api");
    Method method = method(api, exchange.get("operation").asText());
    Map<String, JsonNode> given = new HashMap<>();
    for (JsonNode each : exchange.get("parameters")) {
      given.put(plain(each.get("name").asText()), each.get("value"));
    }
    if (exchange.get("has_body").asBoolean()) {
      given.put("body", exchange.get("body"));
    }
    Parameter[] parameters = method.getParameters();
    Object[] values = new Object[parameters.length];
    for (int index = 0; index < parameters.length; index++) {
      JsonNode value = given.remove(plain(parameters[index].getName()));
      if (value != null) {
        values[index] =
            json.readValue(value.toString(), json.constructType(parameters[index].getParameterizedType()));
      }
    }
    if (!given.isEmpty()) {
      throw new IllegalStateException("no parameters " + given.keySet());
    }
    return method.invoke(api.getConstructor(ApiClient.class).newInstance(client), values);
  }

  // The shortest of the overloads: the others take headers of their own.
  private static Method method(Class<?> api, String name) {
    Method found = null;
    for (Method each : api.getMethods()) {
      if (each.getName().equals(name)
          && (found == null || each.getParameterCount() < found.getParameterCount())) {
        found = each;
      }
    }
    return found;
  }

  private static String plain(String name) {
    return name.toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9]", "");
  }

  private static JsonNode outcome(Callable<Object> act) {
    ObjectNode found = json.createObjectNode();
    try {
      found.set("answer", survived(act.call()));
    } catch (InvocationTargetException error) {
      found.put("error", error.getCause().toString());
    } catch (Exception error) {
      found.put("error", error.toString());
    }
    return found;
  }

  // Returns a model's JSON after it was written, read and written again.
  private static JsonNode survived(Object value) throws Exception {
    if (value == null) {
      return json.nullNode();
    }
    String first = json.writeValueAsString(value);
    JsonNode again = json.readTree(json.writeValueAsString(json.readValue(first, value.getClass())));
    if (!again.equals(json.readTree(first))) {
      throw new IllegalStateException("it differs after its own JSON");
    }
    return again;
  }

  private EveryOperation() {}
}
