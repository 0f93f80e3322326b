// The explorer: Swagger UI on this service's own description, and on nothing else.
window.ui = SwaggerUIBundle({
  url: new URL("v3/openapi.json", document.baseURI).href,
  dom_id: "#explorer",
  layout: "BaseLayout",
  deepLinking: true,
  docExpansion: "none",
  filter: true,
  tryItOutEnabled: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  validatorUrl: null, // else a badge would send the description to an outside address
  persistAuthorization: false, // credentials live as long as the page
});
