"""What people see: progress line, error messages, HTML pages and charts."""
