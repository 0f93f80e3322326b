// @ts-check
/** The panel's connection to the host's page. `host.js` is the other end of the port. */

/** @typedef {{page: Record<string, string>, custom: Record<string, unknown>, shown: boolean, identities: number, leave: boolean, drafts?: string | null, conversation?: string}} PageState */
/** @typedef {{state: PageState, send: (message: any) => void, ask: (name: string) => Promise<any>}} Page */

const PAGE_TIMEOUT_MS = 3_000;

/** Connect to the page that shows the panel; null if there is none, or one without the loader. @param {(before: PageState) => void} changed  called after each change of the state @returns {Promise<Page | null>} */
export function connectPage(changed) {
  if (parent === window) return Promise.resolve(null);
  /** @type {Map<number, (answer: any) => void>} */
  const asked = new Map();
  let last = 0;
  return new Promise((connected) => {
    setTimeout(connected, PAGE_TIMEOUT_MS, null);
    addEventListener("message", ({ source, data, ports: [port] }) => {
      if (source !== parent || !data?.deskwire || !port) return;
      port.onmessage = ({ data, ports }) => {
        const { state } = page;
        if (!data.answer) return (page.state = data), changed(state);
        asked.get(data.answer)?.({ ...data, value: ports[0] ?? data.value });
        asked.delete(data.answer);
      };
      /** @type {Page} */
      const page = {
        state: data.deskwire,
        send: (message) => port.postMessage(message),
        ask: (name) =>
          new Promise((done, fail) => {
            asked.set(++last, ({ value, problem }) => (problem ? fail(new Error(problem)) : done(value)));
            port.postMessage({ ask: last, name });
          }),
      };
      connected(page);
    });
    parent.postMessage("deskwire:hello", "*"); // says nothing but that the panel is there; its policy has admitted the page
  });
}
