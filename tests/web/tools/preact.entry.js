// The source of http/deskwire/http/pages/desk/vendor/preact.js, bundled by `make vendor`.
export { Component, Fragment, createContext, h, render } from "preact";
export { useCallback, useContext, useEffect, useErrorBoundary, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
export { batch, computed, effect, signal, untracked, useComputed, useSignal, useSignalEffect } from "@preact/signals";
export { html } from "htm/preact";
