<!-- What is taken out of <label> records: one section. -->
<!DOCTYPE xsl:stylesheet [
<!ENTITY value "<xsl:text xmlns:xsl='http://www.w3.org/1999/XSL/Transform'>&#xFDD0;</xsl:text>">
<!ENTITY row "<xsl:text xmlns:xsl='http://www.w3.org/1999/XSL/Transform'>&#xFDD1;</xsl:text>">
]>
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="text" encoding="UTF-8"/>
  <xsl:template match="/labels">
    <xsl:for-each select="label">
      <xsl:value-of select="id"/>&value;
      <xsl:value-of select="name"/>&value;
      <xsl:value-of select="contains(profile, 'DO NOT USE')"/>&value;
      <xsl:value-of select="parentLabel/@id"/>&row;
    </xsl:for-each>
  </xsl:template>
</xsl:stylesheet>
