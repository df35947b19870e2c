// The entry: styles, then the application.

import { render } from "preact";
import "./style/base.css";
import "./style/controls.css";
import "./style/layout.css";
import "./style/pages.css";
import { App } from "./app";

const root = document.getElementById("app");
if (root) render(<App />, root);
