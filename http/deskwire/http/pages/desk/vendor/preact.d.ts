export { Component, ComponentChildren, Fragment, createContext, h, render, VNode } from "preact";
export { useCallback, useContext, useEffect, useErrorBoundary, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
export { batch, computed, effect, ReadonlySignal, Signal, signal, untracked, useComputed, useSignal, useSignalEffect } from "@preact/signals";
export { html } from "htm/preact";
