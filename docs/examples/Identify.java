// Sign a customer's identity for Deskwire's widget. Needs Java 17 or newer, and Jackson for the JSON.
//
// CHANNEL_ID=chn_... CHANNEL_SECRET=chs_... java -cp jackson-databind.jar:… Identify.java user-1 "Ada Lovelace"
//
// Call identify in a route of your site that knows who is signed in, and answer with its result. The secret stays in your backend.

import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

final class Identify {
    private static final Duration LIFETIME = Duration.ofHours(1); // at most 24 hours are accepted
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Base64.Encoder BASE64 = Base64.getUrlEncoder().withoutPadding();

    /** Return the identity of the signed-in user. The profile may have name, email, phone, avatar and attributes. */
    static String identify(String channelId, String secret, String userId, Map<String, ?> profile) throws Exception {
        Map<String, Object> claims = new HashMap<>(profile);
        claims.put("sub", userId);
        claims.put("aud", channelId);
        claims.put("exp", Instant.now().plus(LIFETIME).getEpochSecond());
        String signed = encoded(Map.of("alg", "HS256", "typ", "JWT")) + "." + encoded(claims);
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(secret.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
        return signed + "." + BASE64.encodeToString(mac.doFinal(signed.getBytes(StandardCharsets.UTF_8)));
    }

    private static String encoded(Object part) throws Exception {
        return BASE64.encodeToString(JSON.writeValueAsBytes(part));
    }

    public static void main(String[] args) throws Exception {
        String channelId = System.getenv("CHANNEL_ID");
        System.out.println(identify(channelId, System.getenv("CHANNEL_SECRET"), args[0], Map.of("name", args[1])));
    }
}
