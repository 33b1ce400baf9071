// Browsers start no workers on pages opened from a disk, and the search of the site runs in one. On such pages a worker's
// script runs in a hidden frame instead, with the same messages in both directions.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget { // the search looks for this name
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inner = frame.contentWindow;
      const load = (address) =>
        new Promise((done, failed) => {
          const script = inner.document.createElement("script");
          script.src = new URL(address, document.baseURI).href;
          script.onload = done;
          script.onerror = failed;
          inner.document.head.append(script);
        });
      inner.importScripts = async (...addresses) => {
        for (const address of addresses) await load(address);
      };
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const ready = load(url);
      this.postMessage = (data) =>
        ready.then(() => inner.dispatchEvent(new inner.MessageEvent("message", { data })));
      this.terminate = () => frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
