// The session that the guide for Next.js leaves to its reader: a header of the test.
export const userId = (request) => request.headers.get("x-user");
