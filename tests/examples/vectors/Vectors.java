// Print the verdicts of the example on the vectors of a file.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

public class Vectors {
  public static void main(String[] args) throws Exception {
    ObjectMapper json = new ObjectMapper();
    List<Boolean> verdicts = new ArrayList<>();
    for (JsonNode v : json.readTree(new File(args[0]))) {
      byte[] body = v.get("body").asText().getBytes(StandardCharsets.UTF_8);
      verdicts.add(Verify.verify(v.get("secret").asText(), v.get("header").asText(), body, v.get("now").asLong()));
    }
    System.out.println(json.writeValueAsString(verdicts));
  }
}
