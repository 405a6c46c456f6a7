// Where the page starts: styles, theme, and the page that the URL names.
// Guide: docs/guide/viewer.md.
// SPDX-License-Identifier: Apache-2.0
import './styles.css';
import './flame.css';
import { startApp } from './pages/app';

const root = document.getElementById('app');
if (root) startApp(root);
