package javax.annotation;

/** Stands in for the annotation of the generated client, which the JDK has had in another package since version 9. */
public @interface Generated {
  String[] value();
  String comments() default "";
  String date() default "";
}
