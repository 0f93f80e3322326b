package org.openapitools.jackson.nullable;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.databind.BeanDescription;
import com.fasterxml.jackson.databind.BeanProperty;
import com.fasterxml.jackson.databind.DeserializationContext;
import com.fasterxml.jackson.databind.JavaType;
import com.fasterxml.jackson.databind.JsonDeserializer;
import com.fasterxml.jackson.databind.SerializationConfig;
import com.fasterxml.jackson.databind.SerializerProvider;
import com.fasterxml.jackson.databind.deser.ContextualDeserializer;
import com.fasterxml.jackson.databind.deser.std.StdDeserializer;
import com.fasterxml.jackson.databind.module.SimpleModule;
import com.fasterxml.jackson.databind.ser.BeanPropertyWriter;
import com.fasterxml.jackson.databind.ser.BeanSerializerModifier;
import com.fasterxml.jackson.databind.ser.std.StdSerializer;
import java.io.IOException;
import java.util.List;

/** Writes and reads JsonNullable: an absent value is no field, and null is null. */
public final class JsonNullableModule extends SimpleModule {
  @SuppressWarnings({"unchecked", "rawtypes"})
  public JsonNullableModule() {
    addSerializer((Class) JsonNullable.class, new Serializer());
    addDeserializer((Class) JsonNullable.class, new Deserializer(null));
    setSerializerModifier(new OmitUndefined());
  }

  private static final class Serializer extends StdSerializer<JsonNullable<?>> {
    private Serializer() {
      super(JsonNullable.class, false);
    }

    @Override
    public void serialize(JsonNullable<?> value, JsonGenerator generator, SerializerProvider provider)
        throws IOException {
      provider.defaultSerializeValue(value.orElse(null), generator);
    }
  }

  private static final class Deserializer extends StdDeserializer<JsonNullable<?>>
      implements ContextualDeserializer {
    private final JavaType content;

    private Deserializer(JavaType content) {
      super(JsonNullable.class);
      this.content = content;
    }

    @Override
    public JsonDeserializer<?> createContextual(DeserializationContext context, BeanProperty property) {
      return new Deserializer(context.getContextualType().containedType(0));
    }

    @Override
    public JsonNullable<?> deserialize(JsonParser parser, DeserializationContext context)
        throws IOException {
      return JsonNullable.of(context.readValue(parser, content));
    }

    @Override
    public JsonNullable<?> getNullValue(DeserializationContext context) {
      return JsonNullable.of(null);
    }
  }

  private static final class OmitUndefined extends BeanSerializerModifier {
    @Override
    public List<BeanPropertyWriter> changeProperties(
        SerializationConfig config, BeanDescription bean, List<BeanPropertyWriter> writers) {
      writers.replaceAll(each -> each.getType().hasRawClass(JsonNullable.class) ? new Writer(each) : each);
      return writers;
    }
  }

  private static final class Writer extends BeanPropertyWriter {
    private Writer(BeanPropertyWriter base) {
      super(base);
    }

    @Override
    public void serializeAsField(Object bean, JsonGenerator generator, SerializerProvider provider)
        throws Exception {
      JsonNullable<?> value = (JsonNullable<?>) get(bean);
      if (value != null && value.isPresent()) {
        super.serializeAsField(bean, generator, provider);
      }
    }
  }
}
